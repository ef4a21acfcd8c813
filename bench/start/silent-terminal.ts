import type { runChat } from '../../packages/cli/src/tui/run-chat.ts'

type Terminal = NonNullable<Parameters<typeof runChat>[0]['terminal']>

/** A terminal that takes everything and keeps nothing, so that what is measured is the chat's own. */
export class SilentTerminal implements Terminal {
  readonly columns = 100
  readonly rows = 30
  readonly kittyProtocolActive = false
  written = 0

  write(data: string): void {
    this.written += data.length
  }

  start(): void {}
  stop(): void {}
  async drainInput(): Promise<void> {}
  moveBy(): void {}
  hideCursor(): void {}
  showCursor(): void {}
  clearLine(): void {}
  clearFromCursor(): void {}
  clearScreen(): void {}
  setTitle(): void {}
  setProgress(): void {}
}
