import { Lexer, type Token, type TokensList } from 'marked'

/** The top-level blocks of a text, and the text that they are made of. */
export interface Blocks {
  readonly text: string
  readonly tokens: readonly Token[]
}

export const noBlocks: Blocks = { text: '', tokens: [] }

/**
 * Parses Markdown. Text that grows by appending is parsed from its last block on; the blocks before it keep their
 * identity. Never throws, and takes bounded time: what is too long, nested too deeply or has too many marks stays plain.
 */
export function parseBlocks(text: string, before: Blocks = noBlocks): Blocks {
  if (text === before.text) return before
  if (text.length > maxLength) return { text, tokens: [plain(text)] }
  let blocks = text.startsWith(before.text) ? before : noBlocks
  // Long text is parsed as if it grew, so that only a long block stays plain and not all of the text.
  for (let end = blocks.text.length + pieceLength; end < text.length; end += pieceLength)
    blocks = grown(blocks, text.slice(0, end))
  return grown(blocks, text)
}

function grown({ tokens }: Blocks, text: string): Blocks {
  const kept = finishedBlocks(tokens)
  const start = kept.reduce((sum, { raw }) => sum + raw.length, 0)
  const rest = text.slice(start)
  const isPlain = rest.length > maxBlockLength || manyMarkers.test(rest) || hasHugeItem(rest)
  return { text, tokens: [...kept, ...(isPlain ? [plain(rest)] : new BoundedLexer().lex(rest))] }
}

/** The parser's regular expressions take quadratic time on hostile text, so it only gets what cannot take long. */
class BoundedLexer extends Lexer {
  #depth = 0

  constructor() {
    super({ gfm: true, breaks: true })
  }

  override blockTokens(text: string, tokens?: Token[], isClipped?: boolean): Token[]
  override blockTokens(text: string, tokens?: TokensList, isClipped?: boolean): TokensList
  override blockTokens(text: string, tokens: Token[] = [], isClipped?: boolean): Token[] {
    if (this.#depth >= maxDepth) {
      tokens.push(plain(text))
      return tokens
    }
    this.#depth++
    try {
      return super.blockTokens(text, tokens, isClipped)
    } finally {
      this.#depth--
    }
  }

  override inlineTokens(text: string, tokens: Token[] = []): Token[] {
    if ((text.match(marks)?.length ?? 0) <= maxMarks && !longWord.test(text)) return super.inlineTokens(text, tokens)
    tokens.push(plain(text))
    return tokens
  }
}

/** Longer text, and text with a longer block, is shown without formatting. */
const maxLength = 2_000_000
const maxBlockLength = 200_000
const pieceLength = 50_000
/** Of lists and quotations. */
const maxDepth = 12
/** In one paragraph, list item or cell. */
const maxMarks = 200
const marks = /[*_~`[\]<>&\\@!]|www|http/g
/** No address or name is this long, and no gap between words. */
const longWord = /\S{2000}|[^\S\n]{200}/
/** A line that begins with very many quotations or list items. */
const manyMarkers = /^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])){60}/m

/** Whether a list item has very many lines: the parser looks at all of them again for each. */
function hasHugeItem(text: string): boolean {
  let count = -1
  let wasBlank = false
  for (const line of text.split('\n')) {
    if (listMarker.test(line)) count = 0
    else if (wasBlank && /^\S/.test(line)) count = -1
    else if (count >= 0 && ++count > maxItemLines) return true
    wasBlank = line.trim() === ''
  }
  return false
}

const listMarker = /^\s{0,100}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/
const maxItemLines = 500

function plain(text: string): Token {
  return { type: 'plain', raw: text, text }
}

/**
 * All but the last two blocks. More text may continue the last line, and then the last line may belong to the block
 * before it: a list item, or a paragraph that becomes a table.
 */
function finishedBlocks(tokens: readonly Token[]): readonly Token[] {
  const written = tokens.flatMap(({ type }, index) => (type === 'space' ? [] : [index]))
  return tokens.some(({ type }) => type === 'plain') ? [] : tokens.slice(0, written.at(-2) ?? 0)
}
