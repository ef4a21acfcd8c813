import { sliceByColumn, type Component, type Focusable } from '@earendil-works/pi-tui'
import { displayWidth, fitText, padded } from '../../../text/display-width.ts'
import type { Theme } from '../../theme.ts'

export interface Room {
  width: number
  rows: number
}

export interface FrameContent {
  /** Already harmless, like all members. */
  title: string
  /** At the right end of the title, such as `1 of 3`. */
  aside?: string
  /** Keys and what they do, the most important first. */
  hints: readonly string[]
  /** Lines for the space inside the frame. */
  body: (room: Room) => string[]
}

/** A panel of the chat: takes data and callbacks, and does not know the app. Receives the keys while it is open. */
export abstract class FramedPanel implements Component, Focusable {
  focused = false
  protected readonly theme: Theme
  #rows = 24

  constructor(theme: Theme) {
    this.theme = theme
  }

  /** The most rows it may take, including its frame. */
  setRows(rows: number): void {
    this.#rows = rows
  }

  render(width: number): string[] {
    return framed(this.content(), { theme: this.theme, width, rows: this.#rows })
  }

  invalidate(): void {
    // Nothing that depends on colors is cached.
  }

  abstract handleInput(data: string): void

  protected abstract content(): FrameContent
}

/** With less room than this, the frame is left out. */
const narrowest = 12
const lowest = 5

function framed(content: FrameContent, { theme, width, rows }: Room & { theme: Theme }): string[] {
  if (width < narrowest || rows < lowest) return bodyIn(content, { width, rows: Math.max(1, rows) })
  const inner = width - 4
  const hints = hintLines(content.hints, { width: inner, rows: Math.max(1, Math.floor(rows / 5)) })
  const body = bodyIn(content, { width: inner, rows: rows - 2 - hints.length })
  const side = theme.border('│')
  const framedLine = (line: string): string => `${side} ${padded(line, inner)} ${side}`
  return [
    topLine(content, { theme, width }),
    ...body.map(framedLine),
    ...hints.map((line) => framedLine(theme.muted(line))),
    theme.border(`╰${'─'.repeat(width - 2)}╯`),
  ]
}

function bodyIn({ body }: FrameContent, { width, rows }: Room): string[] {
  const lines = body({ width, rows }).slice(0, rows)
  return lines.map((line) => (displayWidth(line) <= width ? line : sliceByColumn(line, 0, width, true)))
}

function topLine({ title, aside = '' }: FrameContent, { theme, width }: { theme: Theme; width: number }): string {
  const end = aside === '' ? '' : ` ${fitText(aside, Math.floor(width / 3))} `
  const name = ` ${fitText(title, width - 6 - displayWidth(end))} `
  const line = '─'.repeat(Math.max(0, width - 4 - displayWidth(name) - displayWidth(end)))
  return `${theme.border('╭─')}${theme.heading(name)}${theme.border(line)}${theme.muted(end)}${theme.border('─╮')}`
}

/** Never breaks inside a hint. Leaves out hints that do not fit, with an ellipsis. */
function hintLines(hints: readonly string[], { width, rows }: Room): string[] {
  const lines: string[] = []
  for (const hint of hints) {
    const last = lines.at(-1)
    const joined = last === undefined ? hint : `${last} · ${hint}`
    if (last !== undefined && displayWidth(joined) <= width) lines[lines.length - 1] = joined
    else lines.push(fitText(hint, width))
  }
  if (lines.length <= rows) return lines
  const kept = lines.slice(0, rows)
  kept[rows - 1] = fitText(`${kept[rows - 1]} · …`, width)
  return kept
}
