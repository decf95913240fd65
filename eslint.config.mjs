// The house rules that a machine can check. The import table is that of docs/ARCHITECTURE.md: each message says what to do
// instead, and test/lint.test.ts sees each of them fail.
import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** Packages that only some folders may know. Files directly under src belong to the folder '.'. */
const packages = [
  {
    only: ['store'],
    regex: '^(@prisma/|prisma($|/)|pg($|/))',
    message: 'Prisma and SQL live in src/store: add a named statement there and call it through deps.store or tx.',
  },
  {
    only: ['schema', 'transport'],
    regex: '^(graphql($|/|-)(?!subscriptions|redis)|@pothos/|@graphql-|@escape\\.tech/|@envelop/)',
    message:
      'GraphQL ends at src/schema: take and give the plain types of src/model.ts; throw a DomainError for a refusal.',
  },
  {
    only: ['hints'],
    regex: '^(ioredis($|/)|graphql-redis-subscriptions($|/)|graphql-subscriptions($|/))',
    message: 'Redis is behind the hint bus: use the contract of src/hints/bus.ts.',
  },
  {
    only: ['transport'],
    regex: '^ws$',
    message: 'Sockets belong to src/transport: give it a callback (see Connection.close in src/domain/connections.ts).',
  },
  {
    only: ['.'],
    regex: '^prom-client$',
    message: 'Add a function to src/metrics.ts for the thing worth counting and call that.',
  },
];

/** What each folder may import of src, besides itself, model, log and metrics. 'x' is a file or a folder, 'x (types)' its types. */
const folders = {
  transport: {
    may: ['schema/index', 'schema/context (types)', 'domain', 'config (types)'],
    message:
      'src/transport sees schema/index, the use cases of src/domain and the types of config; app.ts hands in the rest.',
  },
  schema: {
    may: ['domain'],
    message: 'src/schema sees src/domain only: a resolver is one line that calls a use case (deps, viewer, input).',
  },
  domain: {
    may: ['store', 'hints/bus', 'hints/mailbox', 'hints/pace', 'config (types)'],
    message:
      'src/domain sees src/store, the bus, mailbox and pace of hints, and the types of config: what else it needs comes in through Deps.',
  },
  store: {
    may: ['generated'],
    message: 'src/store sees Prisma and the database only: pass in what a statement needs, decide in src/domain.',
  },
  hints: {
    may: [],
    message: 'src/hints carries hints and knows nothing of who makes or reads them: pass in a callback or a sink.',
  },
};

/** Files directly under src: app and commands put things together and may import everything, all others little. */
const roots = {
  main: {
    may: ['app', 'commands', 'config'],
    message: 'src/main.ts is the process only: put things together in src/app.ts, which may import everything.',
  },
  demo: {
    may: ['domain'],
    message: 'src/demo.ts goes through the use cases of src/domain, like any client.',
  },
  config: { may: [], message: 'src/config.ts reads the environment and nothing else.' },
};
const leaf = {
  may: [],
  message: 'Every folder may import this file, so it imports nothing but model, log and metrics.',
};

const everywhere = ['model', 'log', 'metrics'];
const withEnd = (name) => `${name}(\\.js$|/)`;

function restrictions(owner, { may, message }, up) {
  const named = may.filter((name) => !name.endsWith(' (types)'));
  const types = may.filter((name) => name.endsWith(' (types)')).map((name) => name.replace(' (types)', ''));
  const allowed = [...named, ...types, ...everywhere].map(withEnd).join('|');
  // From a folder all that is not its own begins with ../; a file of src has only ./
  const others = { regex: `^${up}(?!${allowed})`, message };
  const typesOnly = types.map((name) => ({ regex: `^${up}${withEnd(name)}`, allowTypeImports: true, message }));
  const foreign = packages
    .filter(({ only }) => !only.includes(owner))
    .map(({ regex, message: say }) => ({ regex, message: say }));
  return {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      {
        paths: [{ name: 'node:process', importNames: ['env'], message: environmentMessage }],
        patterns: [...(up === '' ? [] : [others, ...typesOnly]), ...foreign],
      },
    ],
  };
}

const environmentMessage =
  'src/config.ts is the only reader of the environment: add the variable there and pass the value in.';
const publishMessage =
  'Only src/domain/commit.ts publishes, after the commit (H1): call tell(users, hint) inside commit(deps, …).';

export default defineConfig(
  { ignores: ['dist', 'dist-test', 'coverage', 'src/generated', '.tidemark'] },
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },
  js.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/consistent-type-imports': ['error', { disallowTypeAnnotations: false }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true, argsIgnorePattern: '^_' }],
      // graphql's enums are strings, and compared as strings
      '@typescript-eslint/no-unsafe-enum-comparison': 'off',
      // `while (true)` with a return inside is the plain form of "until it works"
      '@typescript-eslint/no-unnecessary-condition': [
        'error',
        { allowConstantLoopConditions: 'only-allowed-literals' },
      ],
      // an async function may have nothing to wait for when a contract says it answers with a promise
      '@typescript-eslint/require-await': 'off',
      // shapes of records are told by interface, unions and rows by type; both are in use on purpose
      '@typescript-eslint/consistent-type-definitions': 'off',
      // Record<string, Json> cannot speak of itself
      '@typescript-eslint/consistent-indexed-object-style': 'off',
      // control characters are refused in ids, so patterns name them
      'no-control-regex': 'off',
      eqeqeq: ['error', 'always', { null: 'ignore' }],
    },
  },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: {
      globals: {
        console: 'readonly',
        performance: 'readonly',
        process: 'readonly',
        setTimeout: 'readonly',
        URL: 'readonly',
      },
    },
  },

  // size: a longer file has a second concept in it
  {
    files: ['**/*.{ts,mjs}'],
    rules: { 'max-lines': ['error', { max: 200, skipBlankLines: true, skipComments: true }] },
  },
  {
    files: ['test/**', 'bench/**'],
    rules: { 'max-lines': ['error', { max: 300, skipBlankLines: true, skipComments: true }] },
  },
  {
    // store and schema: one factory holds all statements or fields of a concept, there only the file is measured
    files: ['src/**'],
    ignores: ['src/store/**', 'src/schema/**'],
    rules: { 'max-lines-per-function': ['error', { max: 40, skipBlankLines: true, skipComments: true }] },
  },

  // tests take objects apart; what README shows of other people's clients stands there word for word
  { files: ['test/**/*.ts'], rules: { '@typescript-eslint/unbound-method': 'off' } },
  { files: ['test/clients/*.ts'], rules: { '@typescript-eslint/no-unsafe-return': 'off' } },

  // the import table
  { files: ['src/*.ts'], rules: restrictions('.', leaf, '\\./') },
  ...Object.entries(roots).map(([name, rule]) => ({
    files: [`src/${name}.ts`],
    rules: restrictions('.', rule, '\\./'),
  })),
  { files: ['src/app.ts', 'src/commands.ts'], rules: restrictions('.', leaf, '') },
  ...Object.entries(folders).map(([name, rule]) => ({
    files: [`src/${name}/**`],
    rules: restrictions(name, rule, '\\.\\./'),
  })),

  {
    files: ['src/**'],
    ignores: ['src/config.ts'],
    rules: {
      'no-restricted-properties': ['error', { object: 'process', property: 'env', message: environmentMessage }],
    },
  },
  {
    files: ['src/**'],
    ignores: ['src/domain/commit.ts', 'src/hints/**'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'CallExpression[callee.property.name=/^publish/]', message: publishMessage },
      ],
    },
  },
  { files: ['src/**'], ignores: ['src/main.ts'], rules: { 'no-console': 'error' } },
);
