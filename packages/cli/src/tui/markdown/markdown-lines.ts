import { Marked, type Token } from '@earendil-works/pi-tui'
import { withinTime } from '../time-limit.ts'
import { blockLines, type BlockOptions } from './blocks.ts'
import { paint } from './wrap-line.ts'

/** Markdown as lines for a terminal. The text must be harmless; adds only colors of the theme. */
export function markdownLines(text: string, options: BlockOptions): string[] {
  return linesOfBlocks(parseBlocks(text), options)
}

export function linesOfBlocks(blocks: readonly Token[], options: BlockOptions): string[] {
  return blockLines(blocks, options).map(paint)
}

/** Text that takes too long to parse becomes one block, or one line, of plain text. */
export function parseBlocks(text: string): Token[] {
  return parseWithinReason(text) ?? asPlainText(text)
}

/** Undefined if the text would take too long, or is nested too deeply. */
export function parseWithinReason(text: string): Token[] | undefined {
  if (deeplyNested.test(text) || (text.match(task)?.length ?? 0) > mostTasks) return undefined
  try {
    return withinTime({ parser: 'Markdown', text }, () => parsed(text))
  } catch {
    // The parser is recursive; text that overflows the stack is shown as plain text.
    return undefined
  }
}

function parsed(text: string): Token[] {
  const lexer = new marked.Lexer(marked.defaults)
  const blocks = lexer.blockTokens(text)
  // The queue grows while it is processed.
  for (const { src, tokens } of lexer.inlineQueue) {
    if (isReadable(src)) lexer.inlineTokens(src, tokens)
    else tokens.push({ type: 'text', raw: src, text: src })
  }
  return blocks
}

export function asPlainText(text: string): Token[] {
  return [{ type: 'html', raw: text, text, block: true, pre: false }]
}

/** Deeper than hand-written text: each level is parsed again for every level above it. */
const deeplyNested =
  /^(?:(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){24}|[ \t]{60,}(?:>|[-+*][ \t]|\d{1,9}[.)][ \t]))/m

/** The parser scans the whole list for every task. */
const task = /^[ \t]*(?:[-+*]|\d{1,9}[.)])[ \t]+\[[ xX]\]/gm
const mostTasks = 2000

/** For every opening marker the parser searches the rest of the text for its end: very many of them would take minutes. */
function isReadable(text: string): boolean {
  if (text.length > longestInline) return false
  let signs = 0
  for (const _ of text.matchAll(openingSigns)) if (++signs > mostSigns) return false
  return true
}

const openingSigns = /[*_`~[<\\&]/g
const mostSigns = 400
const longestInline = 20_000

/** A single `~` is often a home folder. */
const marked = new Marked({ gfm: true }).use({
  tokenizer: {
    del: (source) => (source.startsWith('~~') ? false : undefined),
  },
})
