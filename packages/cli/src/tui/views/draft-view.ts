import type { InFlightItem, InFlightPart } from '@tapetree/session/view'
import { counted, elapsedText } from '../../text/amounts.ts'
import { fitText } from '../../text/display-width.ts'
import { StreamingMarkdown } from '../markdown/streaming-markdown.ts'
import { paint, wrapLine } from '../markdown/wrap-line.ts'
import { indentedBody, outputBody, titleLines } from './call-lines.ts'
import { foldLines } from './folded-lines.ts'
import type { ItemContext } from './item-context.ts'

/** A streamed answer, or an active command of the user. Removed when its entry arrives. */
export class DraftView {
  readonly #startedAt: number
  readonly #streams = new Map<number, { width: number; isFor: ItemContext['theme']; markdown: StreamingMarkdown }>()

  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  /** Redraws after a change of highlighter or theme. */
  forget(): void {
    this.#streams.clear()
  }

  lines({ parts }: InFlightItem, context: ItemContext, width: number): string[] {
    const lines: string[] = []
    for (const part of parts) {
      const drawn = this.#partLines(part, context, width)
      if (lines.length > 0 && drawn.length > 0) lines.push('')
      for (const line of drawn) lines.push(line)
    }
    return lines
  }

  #partLines(part: InFlightPart, context: ItemContext, width: number): readonly string[] {
    const { theme, isUnfolded = false } = context
    switch (part.kind) {
      case 'text':
        return this.#markdown(part, context, width).lines(part.text)
      case 'reasoning':
        return [
          theme.muted(
            fitText(`${isUnfolded ? '▾' : '▸'} Thinking · ${lengthOf(part)}${this.#elapsed(context)}`, width),
          ),
          ...(isUnfolded ? lastLines(part.text, context, width) : []),
        ]
      case 'tool_input':
        return [theme.muted(fitText('○ Preparing a tool call', width))]
      case 'tool_output':
        return [
          ...titleLines(
            {
              sign: { text: '!', style: theme.accent },
              name: 'running',
              argument: '',
              notes: [{ text: elapsedText((context.now ?? Date.now)() - this.#startedAt), style: theme.accent }],
            },
            { context, width },
          ),
          ...indentedBody(outputBody(part.text, { state: 'running', isUnfolded: false }), { theme, width }),
        ]
      default:
        part.kind satisfies never
        return []
    }
  }

  #markdown({ part, text }: InFlightPart, { theme, highlighter }: ItemContext, width: number): StreamingMarkdown {
    const known = this.#streams.get(part)
    if (known?.width === width && known.isFor === theme && known.markdown.continues(text)) return known.markdown
    const markdown = new StreamingMarkdown({ theme, width, highlighter })
    this.#streams.set(part, { width, isFor: theme, markdown })
    return markdown
  }

  #elapsed({ now = Date.now }: ItemContext): string {
    return ` · ${elapsedText(now() - this.#startedAt)}`
  }
}

function lengthOf({ off, text }: InFlightPart): string {
  return counted(off + text.length, 'character')
}

const thoughtLines = 8

function lastLines(text: string, { theme }: ItemContext, width: number): string[] {
  const { lines } = foldLines(text, { limit: thoughtLines, from: 'end' })
  const rows = lines.flatMap((line) => wrapLine([{ text: line, style: theme.muted }], width - 2))
  return rows.slice(-thoughtLines).map((row) => `  ${paint(row)}`)
}
