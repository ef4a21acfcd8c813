import { ReadBuffer, serializeMessage, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client'
import { settledWithin } from '@tapetree/session/util/deadline'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Readable, Writable } from 'node:stream'
import { readProcess } from '../tools/commands/process-table.ts'
import { endTree, findTree, markVariable, type TreeRoot } from '../tools/commands/process-tree.ts'
import { withoutHidden } from './foreign-text.ts'
import { ServerProblem } from './server-problem.ts'

export interface ServerProgram {
  /** Absolute. */
  file: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd: string
  maxMessageBytes: number
}

type ServerProcess = ChildProcessByStdio<Writable, Readable, Readable>

/** How much of a server's standard error is kept: its end. */
const maxStderrBytes = 4096
/** How long a server may take to end after its input has ended, and after SIGTERM. */
const quietEndMs = 500
const askedEndMs = 1000
/** How long to read from the pipe of an ended process. */
const drainMs = 200

/**
 * A server that is a local program, with one message per line. It is started without a shell, in its own
 * process group, and none of its processes outlives it.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: Transport['onmessage']
  readonly #program: ServerProgram
  readonly #buffer: ReadBuffer
  #stderr = Buffer.alloc(0)
  #state: { type: 'new' } | { type: 'open'; process: ServerProcess; tree: TreeRoot } | { type: 'closed' } = {
    type: 'new',
  }
  #ended: Promise<void> | undefined
  #end: string | undefined

  constructor(program: ServerProgram) {
    this.#program = program
    this.#buffer = new ReadBuffer({ maxBufferSize: program.maxMessageBytes })
  }

  /** How it ended and its last output, for a sentence; undefined if it has not ended by itself. */
  get end(): string | undefined {
    if (this.#end === undefined) return undefined
    const said = withoutHidden(this.#stderr.toString()).trim()
    return said === '' ? this.#end : `${this.#end} It said: ${said}`
  }

  async start(): Promise<void> {
    if (this.#state.type !== 'new') throw new Error('A transport is started once.')
    const { file, args, env, cwd } = this.#program
    const mark = randomUUID()
    const process = spawn(file, args, {
      cwd,
      env: { ...env, [markVariable]: mark },
      stdio: ['pipe', 'pipe', 'pipe'],
      shell: false,
      detached: true,
    })
    const started = Promise.withResolvers<void>()
    process.once('spawn', started.resolve)
    process.on('error', (error) => started.reject(couldNotStart(file, error)))
    process.once('exit', (code, signal) => void this.#processEnded(process, signal ?? `exit code ${code}`))
    process.stdin.on('error', () => undefined) // its end shows that it no longer reads
    process.stdout.on('data', (chunk: Buffer) => this.#read(chunk))
    process.stdout.on('error', (error) => this.onerror?.(error))
    process.stderr.on('data', (chunk: Buffer) => {
      this.#stderr = Buffer.concat([this.#stderr, chunk]).subarray(-maxStderrBytes)
    })
    process.stderr.on('error', () => undefined)
    const { pid } = process
    if (pid !== undefined) {
      const since = readProcess(pid)?.startTime ?? '0'
      this.#state = { type: 'open', process, tree: { pid, groupId: pid, mark, since } }
    }
    await started.promise
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#state.type !== 'open') throw new ServerProblem('The server is not running.')
    const { stdin } = this.#state.process
    if (stdin.writableLength > this.#program.maxMessageBytes) {
      this.#fail('It no longer reads what is sent to it.')
      throw new ServerProblem('The server no longer reads what is sent to it.')
    }
    // The answer shows whether the line arrived, so the write is not awaited.
    stdin.write(serializeMessage(message))
  }

  /** Ends the program and all its processes; resolves when they are gone. */
  close(): Promise<void> {
    this.#ended ??= this.#close()
    return this.#ended
  }

  async #close(): Promise<void> {
    if (this.#state.type !== 'open') {
      this.#state = { type: 'closed' }
      return
    }
    const { process, tree } = this.#state
    this.#state = { type: 'closed' }
    this.#buffer.clear()
    this.onclose?.()
    process.stdin.end()
    await exited(process, quietEndMs)
    await endTree(() => findTree(tree), askedEndMs)
    process.stdin.destroy()
    process.stdout.destroy()
    process.stderr.destroy()
  }

  #read(chunk: Buffer): void {
    if (this.#state.type === 'closed') return
    try {
      this.#buffer.append(chunk)
    } catch {
      this.#fail(`It sent a message of more than ${this.#program.maxMessageBytes} bytes.`)
      return
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        this.onerror?.(error as Error)
      }
    }
  }

  #fail(end: string): void {
    this.#end ??= end
    void this.close()
  }

  async #processEnded(process: ServerProcess, how: string): Promise<void> {
    if (this.#state.type === 'closed') return
    // Its last output is still in the pipe; another process may hold the pipe open forever.
    await settledWithin(new Promise((resolve) => process.once('close', resolve)), { ms: drainMs })
    this.#end ??= `It ended (${how}).`
    await this.close()
  }
}

async function exited(process: ServerProcess, withinMs: number): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  await settledWithin(new Promise((resolve) => process.once('exit', resolve)), { ms: withinMs })
}

function couldNotStart(file: string, error: Error): ServerProblem {
  return new ServerProblem(`${file} could not be started: ${error.message}.`, { isFinal: true, cause: error })
}
