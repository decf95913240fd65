// Documents before they are parsed: bounded in tokens and in depth, without recursion, for the parser goes one call deeper at
// each bracket and would come to the end of the stack (P1).
import { GraphQLError, Lexer, parse, Source, TokenKind, type DocumentNode, type ParseOptions } from 'graphql';
import { overLimit, type DomainError } from '../domain/errors.js';

const maxTokens = 4_000;
/** brackets of all kinds inside one another */
const maxNesting = 100;

/** @throws GraphQLError that the document is too long or too deep, or where it is no GraphQL */
export function parseBounded(text: string, options?: ParseOptions): DocumentNode {
  requireBounded(text);
  return parse(text, options);
}

const opening = new Set<string>([TokenKind.BRACE_L, TokenKind.BRACKET_L, TokenKind.PAREN_L]);
const closing = new Set<string>([TokenKind.BRACE_R, TokenKind.BRACKET_R, TokenKind.PAREN_R]);

function requireBounded(text: string): void {
  const lexer = new Lexer(new Source(text));
  let nesting = 0;
  for (let tokens = 0; lexer.advance().kind !== TokenKind.EOF;) {
    const { kind } = lexer.token;
    if (++tokens > maxTokens) throw refused(overLimit('a document', maxTokens, 'tokens'));
    if (opening.has(kind)) nesting++;
    if (closing.has(kind)) nesting--;
    if (nesting > maxNesting) throw refused(overLimit('the depth of a document', maxNesting, 'brackets'));
  }
}

const refused = (error: DomainError) => new GraphQLError(error.message, { originalError: error });
