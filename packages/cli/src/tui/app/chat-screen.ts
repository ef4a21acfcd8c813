import {
  truncateToWidth,
  wrapTextWithAnsi,
  type Component,
  type TUI,
  type TuiMouseEvent,
  type TuiMouseEventResult,
} from '@earendil-works/pi-tui'
import type { Composer } from '../input/composer.ts'
import type { Activities } from '../chat/activities.ts'
import type { Appearance } from './appearance.ts'
import type { PanelPlace } from './panel-place.ts'
import type { Remarks } from '../chat/remarks.ts'
import type { TranscriptPane } from './transcript-pane.ts'

export interface ChatScreenOptions {
  tui: TUI
  appearance: Appearance
  pane: TranscriptPane
  panels: PanelPlace
  composer: Composer
  remarks: Remarks
  activities: Activities
  /** Lines above the conversation. */
  opening: () => readonly string[]
  /** The activity of the run. */
  status: (width: number) => readonly string[]
  /** The task list, while something on it is open. */
  plan: (width: number) => readonly string[]
  /** Messages that wait for their delivery. */
  waiting: (width: number) => readonly string[]
  /** What the keys do now. */
  hint: () => string
  footer: (width: number) => string
  onInput: (data: string) => void
}

const wheelLines = 3
/** On a lower screen the task list would leave too little of the conversation. */
const leastForPlan = 20

/** The whole screen: conversation, activity and composer. Returns exactly the rows of the terminal. */
export class ChatScreen implements Component {
  readonly #options: ChatScreenOptions
  #isFinal = false

  constructor(options: ChatScreenOptions) {
    this.#options = options
  }

  /** From now on draws only what stays in the scrollback. */
  finish(): void {
    this.#isFinal = true
  }

  invalidate(): void {
    this.#options.pane.invalidate()
    this.#options.composer.invalidate()
  }

  handleInput(data: string): void {
    this.#options.onInput(data)
  }

  handleMouse({ type, wheelDelta = 0 }: TuiMouseEvent): TuiMouseEventResult | undefined {
    if (type !== 'wheel' || this.#options.panels.current) return undefined
    this.#options.pane.scrolling?.by(Math.sign(wheelDelta) * wheelLines)
    return { handled: true }
  }

  render(width: number): string[] {
    const { pane, tui } = this.#options
    if (this.#isFinal) return pane.lastLines(width)
    const rows = Math.max(1, tui.terminal.rows)
    const top = this.#top(width)
    const bottom = this.#bottom(width, rows)
    const shown = Math.max(0, rows - bottom.length)
    if (!pane.scrolling) return [...top, ...pane.render(width, shown), ...bottom]
    const above = top.slice(0, Math.max(0, shown - 3))
    return [...above, ...pane.render(width, shown - above.length), ...bottom].slice(-rows)
  }

  #top(width: number): string[] {
    const { opening, appearance } = this.#options
    const lines = opening().flatMap((remark) => wrapTextWithAnsi(remark, Math.max(1, width - 1)))
    return lines.map((line) => appearance.theme.warning(line))
  }

  #bottom(width: number, rows: number): string[] {
    const { remarks, activities, status, plan, waiting, panels, composer, appearance, hint, footer } = this.#options
    const { theme } = appearance
    const said = [
      ...(rows < leastForPlan || panels.current ? [] : plan(width)),
      ...remarks.render(width, theme),
      ...activities.lines().map((line) => theme.muted(truncateToWidth(` ${line}`, width))),
      ...status(width),
      ...waiting(width),
    ]
    const below = [theme.muted(truncateToWidth(` ${hint()}`, width)), footer(width)]
    const panel = panels.current
    if (!panel) return [...said, ...composer.render(width), ...below].slice(-rows)
    if (panel.isFullScreen) {
      panel.setRows(rows)
      return panel.render(width).slice(0, rows)
    }
    // Keeps part of the conversation in view if there is room.
    panel.setRows(Math.max(6, rows - below.length - said.length - Math.min(4, Math.floor(rows / 6))))
    return [...said, ...panel.render(width), footer(width)].slice(-rows)
  }
}
