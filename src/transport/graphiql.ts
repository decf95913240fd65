// GraphiQL at /graphql, from our own files: no internet. The page is small and never stored; what it loads is large and
// never changes. It may hold a demo credential, so who asks decides whether it does.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isLoopbackAddress, isLoopbackHost } from './origins.js';

export const scriptPath = '/graphql/graphiql.js';

/** The demo's devices: their names, and a credential that holds now. */
export interface DemoCredentials {
  readonly devices: readonly string[];
  readonly defaultDevice: string;
  credentialOf(device: string): Promise<string>;
}

export interface GraphiQL {
  page(req: IncomingMessage, res: ServerResponse, params: URLSearchParams): Promise<void>;
  script(res: ServerResponse): Promise<void>;
}

/** @param demo null: the page never holds a credential */
export function createGraphiQL(demo: DemoCredentials | null): GraphiQL {
  let script: Promise<Buffer> | null = null;
  return {
    async page(req, res, params) {
      const prefill = demo && isOfThisMachine(req) ? demo : null;
      const body = await renderPage(prefill, params.get('as'));
      res.writeHead(200, {
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        // no other page may look inside, or lay itself over this one
        'content-security-policy': "frame-ancestors 'none'",
        'x-frame-options': 'DENY',
        'cross-origin-resource-policy': 'same-origin',
        'cross-origin-opener-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
      });
      res.end(body);
    },
    async script(res) {
      script ??= buildScript().catch((error: unknown) => {
        script = null; // the next one tries again
        throw error;
      });
      const body = await script;
      res.writeHead(200, {
        'content-type': 'text/javascript; charset=utf-8',
        'content-encoding': 'gzip',
        'content-length': body.length,
        'cache-control': 'public, max-age=86400',
      });
      res.end(body);
    },
  };
}

/** The peer is this machine and was asked for by one of its names: neither a proxy's guest nor a rebound DNS name. */
function isOfThisMachine(req: IncomingMessage): boolean {
  const isForwarded = req.headers.forwarded !== undefined || req.headers['x-forwarded-for'] !== undefined;
  return !isForwarded && isLoopbackAddress(req.socket.remoteAddress) && isLoopbackHost(req.headers.host);
}

async function renderPage(demo: DemoCredentials | null, as: string | null): Promise<string> {
  const device = demo?.devices.find((name) => name === as) ?? demo?.defaultDevice ?? null;
  const credential = demo && device !== null ? await demo.credentialOf(device) : null;
  const options = {
    title: credential === null ? 'Tidemark' : `Tidemark as ${String(device)}`,
    query: tour,
    defaultQuery: tour,
    headers: JSON.stringify({ authorization: `Bearer ${credential ?? '<credential>'}` }, null, 2),
    // the page brings the credential each time, the browser keeps none
    shouldPersistHeaders: false,
    subscriptionsProtocol: 'SSE',
    maxHistoryLength: 50,
  };
  return html.replace('{options}', () => JSON.stringify(options).replaceAll('<', '\\u003c'));
}

const html = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>Tidemark</title>
  </head>
  <body id="body" class="no-focus-outline">
    <noscript>GraphiQL needs JavaScript.</noscript>
    <div id="root"></div>
    <script src="${scriptPath}"></script>
    <script>
      const options = {options};
      document.title = options.title;
      // Windows of several devices must not take each other's tabs.
      YogaGraphiQL.renderYogaGraphiQL(document.querySelector('#root'), { ...options, storage: sessionStorage });
    </script>
  </body>
</html>
`;

/** Styles, workers and the program in one file, loaded only when somebody looks. */
async function buildScript(): Promise<Buffer> {
  const { css, editorWorkerService, favicon, graphqlWorker, js, jsonWorker } =
    await import('@graphql-yoga/render-graphiql/graphiql');
  const workers = { editorWorkerService, json: jsonWorker, graphql: graphqlWorker };
  const text = `(() => {
  const style = document.createElement('style');
  style.textContent = ${JSON.stringify(css)};
  const icon = Object.assign(document.createElement('link'), { rel: 'icon', href: ${JSON.stringify(favicon)} });
  document.head.append(style, icon);
  const toUrl = (text) => URL.createObjectURL(new Blob([text], { type: 'application/javascript' }));
  const urls = Object.fromEntries(Object.entries(${JSON.stringify(workers)}).map(([name, text]) => [name, toUrl(text)]));
  self.MonacoEnvironment = { globalAPI: false, getWorkerUrl: (_, label) => urls[label] };
})();
${js};`;
  return promisify(gzip)(text, { level: 6 });
}

const tour = `# Tidemark: every device of a user in step.
#
# The Headers tab below says who is asking. Put the cursor
# into an operation and press Ctrl-Enter.

query Overview {
  viewer { user { name } device { id } badge { unread } }
  convs(first: 10) {
    nodes {
      id type title peer { name }
      head read delivered unread
      lastEvent { seq sender { id } text }
    }
  }
}

# Leave this one running, and act in another window as
# another device: each is told, and its badge follows.
subscription Live {
  hints {
    ... on Resync { reason }
    ... on MessageHint {
      seq sender { name } event { text } conv { id unread }
    }
    ... on ReadHint { read unread originDevice conv { id } }
    ... on ConvHint { contentType conv { id title } }
  }
}

# These two want an id of Overview in the Variables tab:
# { "conv": "…", "seq": 3 }. Say it twice: it is sent once.
mutation Say($conv: ID!) {
  send(
    input: {
      conv: $conv
      clientId: "my-first-message"
      contentType: TEXT
      content: { text: "Ahoy" }
    }
  ) { duplicate event { seq text } conv { id head unread } }
}

mutation Read($conv: ID!, $seq: Seq!) {
  markRead(conv: $conv, seq: $seq) {
    read unread head badge { unread }
  }
}
`;
