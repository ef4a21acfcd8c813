import { spawn, type IPty } from '@lydell/node-pty'
import xterm, { type Terminal as Emulator } from '@xterm/headless'
import { builtCommand } from './command-path.ts'
import { bytesOf, type Key } from './keys.ts'
import { cellsOf, rowsOf, type Cell } from './screen.ts'

export interface TerminalOptions {
  /** Where it works, and in which environment. */
  home: { readonly cwd: string; readonly env: Readonly<Record<string, string>> }
  args?: readonly string[]
  columns?: number
  rows?: number
  /** Rows that are kept when they have gone out of sight. */
  scrollback?: number
  /** Added to the environment. */
  env?: Readonly<Record<string, string>>
  /** Another program than the command we have built. */
  command?: readonly [string, ...string[]]
  /** How long something to wait for may take. */
  patienceMs?: number
}

/** What to wait for: words on the screen, or whatever can be told from its rows. */
export type Sight = string | RegExp | ((rows: readonly string[]) => boolean)

/** Long enough for a machine on which everything else runs at the same time, and shorter than a test may take. */
const defaultPatienceMs = 20_000

/** Marks of synchronized output: a frame is complete when both have come. */
const [frameBegin, frameEnd] = ['\u001b[?2026h', '\u001b[?2026l']

/** A command in a real pseudo-terminal, and what somebody in front of it sees. */
export function startTerminal(options: TerminalOptions): Terminal {
  const { home, args = [], columns = 100, rows = 30, scrollback = 1000, env = {}, command = builtCommand } = options
  const [program, ...first] = command
  const pty = spawn(program, [...first, ...args], {
    name: 'xterm-256color',
    cols: columns,
    rows,
    cwd: home.cwd,
    env: { ...home.env, ...env },
    // Bytes as they come: half a character may stand at the end of a read.
    encoding: null,
  })
  const emulator = new xterm.Terminal({ cols: columns, rows, scrollback, allowProposedApi: true })
  return new Terminal(pty, emulator, options.patienceMs)
}

export class Terminal implements AsyncDisposable {
  readonly emulator: Emulator
  /** Resolves with the exit code, or with 128 and the number of the signal that ended it. */
  readonly exit: Promise<number>
  readonly #pty: IPty
  readonly #patienceMs: number
  readonly #read: Uint8Array[] = []
  #onNews: (() => void)[] = []
  /** The end of what was read, in which a mark may be cut. */
  #tail = ''
  /** A frame has begun and is not complete: it may come in several reads. What was read is drawn some time later. */
  #isDrawing = { inRead: false, onScreen: false }
  #exitCode: number | undefined

  constructor(pty: IPty, emulator: Emulator, patienceMs = defaultPatienceMs) {
    this.#pty = pty
    this.#patienceMs = patienceMs
    this.emulator = emulator
    // With `encoding: null` it is bytes, whatever the types say.
    pty.onData((data: string | Uint8Array) => this.#take(typeof data === 'string' ? Buffer.from(data) : data))
    emulator.onData((reply) => this.#send(reply))
    readBeforeDestroy(pty)
    this.exit = new Promise((resolve) => {
      pty.onExit(({ exitCode, signal }) => {
        // What was read before is still being drawn.
        emulator.write('', () => {
          this.#exitCode = signal === undefined || signal === 0 ? exitCode : 128 + signal
          resolve(this.#exitCode)
          this.#tell()
        })
      })
    })
  }

  get pid(): number {
    return this.#pty.pid
  }

  /** Everything that was written to the terminal. */
  get bytes(): Buffer {
    return Buffer.concat(this.#read)
  }

  /** The rows in sight, without blanks at their ends. */
  rows(): string[] {
    return rowsOf(this.emulator, 'in sight')
  }

  screen(): string {
    return `${this.rows().join('\n').trimEnd()}\n`
  }

  /** All there is, from the first row that is kept. */
  history(): string {
    return `${rowsOf(this.emulator, 'all').join('\n').trimEnd()}\n`
  }

  cells(): Cell[][] {
    return cellsOf(this.emulator)
  }

  type(text: string): void {
    this.#send(text)
  }

  press(...keys: Key[]): void {
    for (const key of keys) this.#send(bytesOf(key))
  }

  /** As a terminal does it: what stands between the marks is text, not keys. */
  paste(text: string): void {
    this.#send(`\u001b[200~${text}\u001b[201~`)
  }

  resize(columns: number, rows: number): void {
    this.emulator.resize(columns, rows)
    this.#pty.resize(columns, rows)
  }

  /** Resolves when it is in sight. Fails when the command has ended or the patience has, and shows the screen then. */
  async waitFor(sight: Sight, { timeoutMs = this.#patienceMs } = {}): Promise<void> {
    const deadline = AbortSignal.timeout(timeoutMs)
    while (!this.#sees(sight)) {
      if (this.#exitCode !== undefined) throw this.#missing(sight, `the command has ended with ${this.#exitCode}`)
      if (deadline.aborted) throw this.#missing(sight, `${timeoutMs} ms have passed`)
      await this.#news(deadline)
    }
  }

  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT' = 'SIGKILL'): void {
    if (this.#exitCode === undefined) process.kill(this.pid, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill()
    await this.exit
    this.emulator.dispose()
  }

  #take(data: Uint8Array): void {
    this.#read.push(data)
    const text = this.#tail + Buffer.from(data).toString('latin1')
    const [begun, ended] = [text.lastIndexOf(frameBegin), text.lastIndexOf(frameEnd)]
    const isDrawing = begun === ended ? this.#isDrawing.inRead : begun > ended
    this.#isDrawing.inRead = isDrawing
    this.#tail = text.slice(-frameEnd.length + 1)
    this.emulator.write(data, () => {
      this.#isDrawing.onScreen = isDrawing
      this.#tell()
    })
  }

  #send(text: string): void {
    if (this.#exitCode === undefined) this.#pty.write(text)
  }

  #sees(sight: Sight): boolean {
    if (this.#isDrawing.onScreen && this.#exitCode === undefined) return false
    if (typeof sight === 'function') return sight(this.rows())
    const screen = this.screen()
    return typeof sight === 'string' ? screen.includes(sight) : sight.test(screen)
  }

  #tell(): void {
    for (const tell of this.#onNews.splice(0)) tell()
  }

  #news(deadline: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#onNews.push(resolve)
      deadline.addEventListener('abort', () => resolve(), { once: true })
    })
  }

  #missing(sight: Sight, reason: string): Error {
    const wanted = typeof sight === 'function' ? sight.toString() : JSON.stringify(String(sight))
    const screen = this.screen().replaceAll(/\n(?: *\n){4,}/g, '\n(blank rows)\n')
    return new Error(`Not in sight: ${wanted}; ${reason}. The screen:\n${screen}`)
  }
}

/**
 * 200 ms after the exit the pseudo-terminal destroys its socket, even if a busy loop has not read the last bytes. They are read in the
 * next turn of the loop, so it is destroyed after that.
 */
function readBeforeDestroy(pty: IPty): void {
  const { _socket: socket } = pty as unknown as { _socket: { destroy: () => void } }
  const destroy = socket.destroy.bind(socket)
  socket.destroy = () => {
    setImmediate(() => setImmediate(destroy))
  }
}
