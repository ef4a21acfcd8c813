import { spawn, type IPty } from '@lydell/node-pty'
import xterm from '@xterm/headless'

const { Terminal } = xterm
const columns = 120
const rows = 40
const lineLength = 50

export interface TypistOptions {
  program: string
  args?: readonly string[]
  /** On the screen when it can be typed into. */
  until: string
  random: () => number
}

/** Somebody who types into a program in a real pseudo-terminal and looks at the screen. */
export class Typist implements AsyncDisposable {
  readonly #pty: IPty
  readonly #grid = new Terminal({ cols: columns, rows, allowProposedApi: true })
  readonly #random: () => number
  readonly #exited: Promise<void>
  #onChange: () => void = () => undefined
  #line = ''

  static async start({ program, args = [], until, random }: TypistOptions): Promise<Typist> {
    const pty = spawn(process.execPath, [...process.execArgv, program, ...args], {
      name: 'xterm-256color',
      cols: columns,
      rows,
      env: { ...process.env, TERM: 'xterm-256color' },
    })
    const typist = new Typist(pty, random)
    await typist.#until(() => typist.screen().includes(until), 60_000)
    return typist
  }

  private constructor(pty: IPty, random: () => number) {
    this.#pty = pty
    this.#random = random
    this.#exited = new Promise((resolve) => pty.onExit(() => resolve()))
    pty.onData((data) => this.#grid.write(data, () => this.#onChange()))
  }

  screen(): string {
    const { active } = this.#grid.buffer
    return Array.from(
      { length: rows },
      (_, row) => active.getLine(active.viewportY + row)?.translateToString(true) ?? '',
    ).join('\n')
  }

  /** Presses keys one after the other and gives, for each, the milliseconds until the screen showed it. */
  async type(count: number): Promise<number[]> {
    const samples: number[] = []
    while (samples.length < count) {
      if (this.#line.length >= lineLength) await this.#clear()
      // No two hands hit the frames of the screen at the same moment.
      await pause(10 + this.#random() * 25)
      const key = letters[Math.floor(this.#random() * letters.length)] ?? 'e'
      const wanted = this.#line + key
      const pressed = performance.now()
      this.#pty.write(key)
      await this.#until(() => this.screen().includes(wanted), 10_000)
      samples.push(performance.now() - pressed)
      this.#line = wanted
    }
    return samples
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#pty.kill('SIGKILL')
    await this.#exited
  }

  async #clear(): Promise<void> {
    const typed = this.#line
    this.#pty.write('\u0015')
    await this.#until(() => !this.screen().includes(typed), 10_000)
    this.#line = ''
  }

  async #until(holds: () => boolean, withinMs: number): Promise<void> {
    if (holds()) return
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const deadline = setTimeout(() => reject(new Error(`The screen stayed as it was:\n${this.screen()}`)), withinMs)
    this.#onChange = () => {
      if (holds()) resolve()
    }
    try {
      await promise
    } finally {
      this.#onChange = () => undefined
      clearTimeout(deadline)
    }
  }
}

/** Not those of the streamed words: what is looked for is only in the line that is typed. */
const letters = 'zjZJ'

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
