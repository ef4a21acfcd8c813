import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { InnerEvidence } from '../sync/referee.ts'
import { ForeignStage, type ForeignTask } from './foreign-stage.ts'
import type { ServerWord } from './server-process.ts'

/** Where a conversation takes place. */
export interface Host {
  readonly sessionId: string
  readonly port: number
  readonly token: string
  /** What a referee in the process of the server knows besides what is sent. */
  readonly inner: InnerEvidence | undefined
  /** Ends the server, as it should or by `kill -9`, and starts another one on the same port. */
  restart(): Promise<void>
  close(): Promise<void>
}

/** The server is in this process, and its restarts are orderly. */
export class InnerHost implements Host {
  readonly stage: ForeignStage

  private constructor(stage: ForeignStage) {
    this.stage = stage
  }

  static async open(task: ForeignTask): Promise<InnerHost> {
    return new InnerHost(await ForeignStage.open(task))
  }

  get sessionId(): string {
    return this.stage.sessionId
  }

  get port(): number {
    return this.stage.port
  }

  get token(): string {
    return this.stage.token
  }

  get inner(): InnerEvidence {
    return { durable: this.stage.witness.lines, spoken: this.stage.spoken }
  }

  async restart(): Promise<void> {
    const { port } = this
    await this.stage.close()
    await this.stage.start(port)
  }

  close(): Promise<void> {
    return this.stage.close()
  }
}

type Ready = Extract<ServerWord, { type: 'ready' }>

/** The program of the server and where it keeps what it has compiled. */
export interface ServerProgram {
  file: string
  compileCache: string
}

/** The server is a process, and is killed. */
export class KilledHost implements Host {
  readonly inner = undefined
  readonly #task: ForeignTask
  readonly #program: ServerProgram
  #current: ServerProcess
  /** Loads while the current one works. */
  #next: ServerProcess
  #ready!: Ready

  private constructor(task: ForeignTask, program: ServerProgram) {
    this.#task = task
    this.#program = program
    this.#current = new ServerProcess(program)
    this.#next = new ServerProcess(program)
  }

  static async open(task: ForeignTask, program: ServerProgram): Promise<KilledHost> {
    const host = new KilledHost(task, program)
    host.#ready = await host.#current.host(task)
    return host
  }

  get sessionId(): string {
    return this.#ready.sessionId
  }

  get port(): number {
    return this.#ready.port
  }

  get token(): string {
    return this.#ready.token
  }

  async restart(): Promise<void> {
    await this.#current.kill()
    this.#current = this.#next
    this.#next = new ServerProcess(this.#program)
    const { sessionId, port, token } = this.#ready
    this.#ready = await this.#current.host({ ...this.#task, sessionId, port, token })
  }

  async close(): Promise<void> {
    await this.#current.kill()
    await this.#next.kill()
  }
}

class ServerProcess {
  readonly #child: ChildProcess
  readonly #loaded = Promise.withResolvers<void>()
  readonly #ready = Promise.withResolvers<Ready>()
  readonly #closed: Promise<unknown>

  constructor({ file, compileCache }: ServerProgram) {
    this.#child = fork(file, {
      env: { ...process.env, NODE_COMPILE_CACHE: compileCache },
      silent: true,
    })
    let complaint = ''
    this.#child.stderr?.setEncoding('utf8').on('data', (chunk: string) => (complaint += chunk))
    this.#child.on('message', (word: ServerWord) => {
      if (word.type === 'loaded') this.#loaded.resolve()
      else this.#ready.resolve(word)
    })
    this.#closed = once(this.#child, 'close').then(([code, signal]) => {
      const failure = new Error(`The server ended with ${signal ?? code}: ${complaint.slice(0, 2000)}`)
      this.#loaded.reject(failure)
      this.#ready.reject(failure)
    })
    // It may be killed before it is told anything.
    this.#loaded.promise.catch(() => undefined)
    this.#ready.promise.catch(() => undefined)
  }

  /** Resolves when it lets clients in. */
  async host(task: ForeignTask): Promise<Ready> {
    await this.#loaded.promise
    this.#child.send(task)
    return this.#ready.promise
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#closed
  }
}
