import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Task, Word } from './words.ts'

const resumeProgram = new URL('agent-process.ts', import.meta.url)

export type Delta = Word & { type: 'delta' }

/** An agent in another process, seen from whoever is going to kill it. */
export class KillableAgent {
  readonly lines = new Map<number, string>()
  readonly deltas: Delta[] = []
  readonly submitted: string[] = []
  /** How it ended by itself. */
  end: Word | undefined
  /** What it said about a failure of its own. */
  failure: string | undefined
  readonly #child: ChildProcess
  readonly #isReady: Promise<void>
  readonly #closed: Promise<void>

  constructor(compileCache: string, program = resumeProgram) {
    const child = fork(fileURLToPath(program), {
      execArgv: ['-C', '@tapetree/source'],
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
      silent: true,
    })
    this.#child = child
    let complaint = ''
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk))
    this.#isReady = new Promise((resolve) => {
      child.on('message', (word: Word) => {
        if (word.type === 'ready') resolve()
        else this.#take(word)
      })
    })
    this.#closed = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        if (signal !== 'SIGKILL' && code !== 0)
          this.failure = `ended with ${signal ?? code}: ${complaint.slice(0, 2000)}`
        resolve()
      })
    })
  }

  async go(task: Task): Promise<void> {
    await this.#isReady
    this.#child.send(task)
  }

  /** As `kill -9` does; says when. */
  async kill(): Promise<number> {
    const atMs = Date.now()
    this.#child.kill('SIGKILL')
    await this.#closed
    return atMs
  }

  async closed(): Promise<void> {
    await this.#closed
  }

  #take(word: Word): void {
    if (word.type === 'line') this.lines.set(word.seq, word.crc)
    else if (word.type === 'delta') this.deltas.push(word)
    else if (word.type === 'submitted') this.submitted.push(word.message)
    else this.end = word
  }
}
