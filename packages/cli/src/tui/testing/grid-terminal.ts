import type { Terminal as UiTerminal } from '@earendil-works/pi-tui'
import xterm from '@xterm/headless'

const { Terminal } = xterm

/** A terminal without a window: renders output into a grid for tests, and accepts typed input. */
export class GridTerminal implements UiTerminal {
  readonly kittyProtocolActive = false
  /** All bytes received, for tests of escape sequences. */
  written = ''
  isStarted = false
  title = ''
  #grid: InstanceType<typeof Terminal>
  #onInput: (data: string) => void = () => undefined
  #onResize: () => void = () => undefined
  #watchers = new Set<() => void>()

  constructor({ columns = 80, rows = 24 }: { columns?: number; rows?: number } = {}) {
    this.#grid = new Terminal({ cols: columns, rows, scrollback: 5000, allowProposedApi: true })
    this.#grid.onWriteParsed(() => {
      for (const watcher of this.#watchers) watcher()
    })
  }

  get columns(): number {
    return this.#grid.cols
  }

  get rows(): number {
    return this.#grid.rows
  }

  /** The visible rows, without trailing spaces. */
  screen(): string[] {
    const { active } = this.#grid.buffer
    return Array.from(
      { length: this.rows },
      (_, row) => active.getLine(active.viewportY + row)?.translateToString(true) ?? '',
    )
  }

  /** With the scrollback. */
  scrollback(): string[] {
    const { active } = this.#grid.buffer
    return Array.from({ length: active.length }, (_, row) => active.getLine(row)?.translateToString(true) ?? '')
  }

  get isAltScreen(): boolean {
    return this.#grid.buffer.active.type === 'alternate'
  }

  type(text: string): void {
    for (const character of text) this.press(character)
  }

  /** One key, as its bytes. */
  press(data: string): void {
    this.#onInput(data)
  }

  resize(columns: number, rows: number): void {
    this.#grid.resize(columns, rows)
    this.#onResize()
  }

  /** Resolves when the screen shows it. Waits for output, never for time. */
  async waitFor(wanted: string | RegExp | ((screen: string) => boolean)): Promise<string> {
    const holds = (): string | undefined => {
      const text = this.screen().join('\n')
      const isThere =
        typeof wanted === 'string' ? text.includes(wanted) : wanted instanceof RegExp ? wanted.test(text) : wanted(text)
      return isThere ? text : undefined
    }
    const already = holds()
    if (already !== undefined) return already
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const deadline = setTimeout(
      () => reject(new Error(`The screen never showed ${String(wanted)}. It shows:\n${this.screen().join('\n')}`)),
      8000,
    )
    const watcher = (): void => {
      const text = holds()
      if (text !== undefined) resolve(text)
    }
    this.#watchers.add(watcher)
    try {
      return await promise
    } finally {
      this.#watchers.delete(watcher)
      clearTimeout(deadline)
    }
  }

  /** All output so far is in the grid. */
  settled(): Promise<void> {
    return new Promise((resolve) => this.#grid.write('', resolve))
  }

  start(onInput: (data: string) => void, onResize: () => void): void {
    this.#onInput = onInput
    this.#onResize = onResize
    this.isStarted = true
  }

  stop(): void {
    this.#onInput = () => undefined
    this.#onResize = () => undefined
    this.isStarted = false
  }

  async drainInput(): Promise<void> {
    // Input has ended.
  }

  write(data: string): void {
    this.written += data
    this.#grid.write(data)
  }

  moveBy(lines: number): void {
    if (lines !== 0) this.write(`\u001b[${Math.abs(lines)}${lines > 0 ? 'B' : 'A'}`)
  }

  hideCursor(): void {
    this.write('\u001b[?25l')
  }

  showCursor(): void {
    this.write('\u001b[?25h')
  }

  clearLine(): void {
    this.write('\u001b[K')
  }

  clearFromCursor(): void {
    this.write('\u001b[J')
  }

  clearScreen(): void {
    this.write('\u001b[2J\u001b[H')
  }

  setTitle(title: string): void {
    this.title = title
  }

  setProgress(): void {
    // A grid does not show it.
  }
}
