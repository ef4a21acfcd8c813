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
import { MouseSelection, type DrawnAreas, type MouseSelectionOptions } from './mouse-selection.ts'
import type { TranscriptPane } from './transcript-pane.ts'
import { padded } from '../../text/display-width.ts'

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
  /** What is beside the conversation on a wide screen. */
  sidebar: (size: { width: number; rows: number }) => readonly string[]
  /** Copies text that the user has selected with the mouse. */
  copy: (text: string) => void
  /** What a click on a row of the conversation or of the sidebar does, while no panel is open. */
  clickAt: MouseSelectionOptions['clickAt']
  onChange: () => void
  onInput: (data: string) => void
}

const wheelLines = 3
/** On a lower screen the task list would leave too little of the conversation. */
const leastForPlan = 20
/** From this width on, there is a sidebar. The conversation beside it is wide enough for diffs side by side. */
const leastForSidebar = 160
const sidebarWidth = 34
const bar = ' │ '

/** The whole screen: conversation, activity and composer. Returns exactly the rows of the terminal. */
export class ChatScreen implements Component {
  readonly #options: ChatScreenOptions
  readonly #selection: MouseSelection
  #isFinal = false

  constructor(options: ChatScreenOptions) {
    this.#options = options
    const { pane, panels, copy, onChange } = options
    const clickAt: MouseSelectionOptions['clickAt'] = (place) => (panels.current ? undefined : options.clickAt(place))
    this.#selection = new MouseSelection({ scrolling: () => pane.scrolling, copy, clickAt, onChange })
  }

  /** From now on draws only what stays in the scrollback. */
  finish(): void {
    this.#isFinal = true
    this.#selection.clear()
  }

  invalidate(): void {
    this.#options.pane.invalidate()
    this.#options.composer.invalidate()
  }

  handleInput(data: string): void {
    this.#selection.clear()
    this.#options.onInput(data)
  }

  handleMouse(event: TuiMouseEvent): TuiMouseEventResult | undefined {
    const { type, wheelDelta = 0 } = event
    if (type !== 'wheel') return this.#selection.handle(event)
    if (this.#options.panels.current) return undefined
    this.#options.pane.scrolling?.by(Math.sign(wheelDelta) * wheelLines)
    return { handled: true }
  }

  render(width: number): string[] {
    const { pane, tui, appearance } = this.#options
    if (this.#isFinal) return pane.lastLines(width)
    const rows = Math.max(1, tui.terminal.rows)
    if (!pane.scrolling) {
      const bottom = this.#bottom(width, rows)
      return [...this.#top(width), ...pane.render(width, Math.max(0, rows - bottom.length)), ...bottom]
    }
    const room = this.#hasSidebar(width) ? width - sidebarWidth - bar.length : width
    const { main, side } = this.#selection.mark(this.#areas(room, rows))
    if (!side) return [...main]
    const between = appearance.theme.border(bar)
    return main.map((row, index) => `${padded(row, room)}${between}${side.rows[index] ?? ''}`)
  }

  #areas(width: number, rows: number): DrawnAreas {
    const { pane, tui, sidebar } = this.#options
    const top = this.#top(width)
    const bottom = this.#bottom(width, rows)
    const shown = Math.max(0, rows - bottom.length)
    const above = top.slice(0, Math.max(0, shown - 3))
    const conversation = pane.render(width, shown - above.length)
    const isWide = width < tui.terminal.columns
    return {
      pane: { top: above.length, rows: conversation.length },
      main: [...above, ...conversation, ...bottom].slice(-rows),
      side: isWide ? { column: width + bar.length, rows: sidebar({ width: sidebarWidth, rows }) } : undefined,
    }
  }

  /** Not beside a panel that takes the whole screen. */
  #hasSidebar(width: number): boolean {
    return width >= leastForSidebar && this.#options.panels.current?.isFullScreen !== true
  }

  #top(width: number): string[] {
    const { opening, appearance } = this.#options
    const lines = opening().flatMap((remark) => wrapTextWithAnsi(remark, Math.max(1, width - 1)))
    return lines.map((line) => appearance.theme.warning(line))
  }

  #bottom(width: number, rows: number): string[] {
    const { remarks, activities, status, plan, waiting, panels, composer, appearance, hint, footer, tui } =
      this.#options
    const { theme } = appearance
    const said = [
      // The sidebar has all of it.
      ...(rows < leastForPlan || panels.current || width < tui.terminal.columns ? [] : plan(width)),
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
