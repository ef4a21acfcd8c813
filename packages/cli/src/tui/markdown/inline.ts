import type { Token } from '@earendil-works/pi-tui'
import type { Style, Theme } from '../theme.ts'
import { inside, type Span, type StyledLine } from './styled-line.ts'

/** Inline content of a paragraph, heading or cell, as lines: a line break in the source is one on the screen. */
export function inlineLines(tokens: readonly Token[], theme: Theme, style?: Style): StyledLine[] {
  const lines: Span[][] = [[]]
  for (const { text, style: own } of spansOf(tokens, { theme, style })) {
    const [first = '', ...rest] = text.split('\n')
    lines.at(-1)?.push({ text: first, style: own })
    for (const piece of rest) lines.push([{ text: piece, style: own }])
  }
  return lines.map((line) => line.filter(({ text }) => text !== ''))
}

interface Surroundings {
  theme: Theme
  style: Style | undefined
}

function spansOf(tokens: readonly Token[], around: Surroundings): Span[] {
  return tokens.flatMap((token) => spansIn(token, around))
}

function spansIn(token: Token, { theme, style }: Surroundings): Span[] {
  const within = (own: Style): Span[] => spansOf(innerTokens(token) ?? [], { theme, style: inside(style, own) })
  switch (token.type) {
    case 'strong':
      return within(theme.strong)
    case 'em':
      return within(theme.emphasis)
    case 'del':
      return within(theme.strike)
    case 'codespan':
      return [{ text: wordsOf(token), style: inside(style, theme.code) }]
    case 'br':
      return [{ text: '\n' }]
    case 'link':
      return [...within(theme.link), ...addressOf(token, { theme, style })]
    case 'image':
      return [
        { text: `[image: ${wordsOf(token)}]`, style: inside(style, theme.muted) },
        ...addressOf(token, { theme, style }),
      ]
    case 'checkbox':
      return []
    case 'html':
      return [{ text: token.raw, style }]
    default: {
      // Plain text, in a list with its own tokens, and tokens of newer versions.
      const inner = innerTokens(token)
      return inner ? spansOf(inner, { theme, style }) : [{ text: wordsOf(token), style }]
    }
  }
}

export function innerTokens(token: Token): Token[] | undefined {
  return 'tokens' in token ? token.tokens : undefined
}

function wordsOf(token: Token): string {
  return 'text' in token && typeof token.text === 'string' ? token.text : token.raw
}

/** Always shows the target of a link: its text may claim another one. */
function addressOf(token: Token, { theme, style }: Surroundings): Span[] {
  const address = 'href' in token && typeof token.href === 'string' ? token.href : ''
  const words = wordsOf(token)
  if (address === '' || words === address || `mailto:${words}` === address) return []
  return [{ text: ` (${address})`, style: inside(style, theme.muted) }]
}
