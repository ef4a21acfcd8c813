import { settledWithin } from '@tapetree/session/util/deadline'
import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { readProcess } from './process-table.ts'
import { endTree, findTree, markVariable } from './process-tree.ts'

export interface OwnProcessOptions {
  /** Absolute, or found in the `PATH` of `env`. */
  file: string
  args: readonly string[]
  /** The complete environment. */
  env: Readonly<Record<string, string>>
  cwd: string
}

const quietEndMs = 200
const askedEndMs = 1000
/** A process that left the tree may hold stdout open for ever: reading ends when nothing was read in so many of these times. */
const quietReadMs = 500
const quietReads = 4
const keptErrorLength = 2000

/** A program that talks to us over stdin and stdout. None of its processes outlives `end`. */
export class OwnProcess {
  /** Resolves with a sentence when it has ended, by itself or because of `end`. */
  readonly ended: Promise<string>
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly #mark = randomUUID()
  readonly #ended = Promise.withResolvers<string>()
  #errors = ''
  #gone: Promise<void> | undefined

  constructor({ file, args, env, cwd }: OwnProcessOptions) {
    this.ended = this.#ended.promise
    this.#child = spawn(file, args, {
      cwd,
      env: { ...env, [markVariable]: this.#mark },
      stdio: 'pipe',
      shell: false,
      detached: true,
    })
    this.#child.on('error', (error) => void this.end(`It could not be started: ${error.message}.`))
    this.#child.once('exit', (code, signal) => {
      void this.end(`It ended (${signal ?? `exit code ${code}`}).`, { isReadToEnd: true })
    })
    this.#child.stdin.once('error', () => void this.#endDeaf())
    this.#child.stdin.on('error', () => undefined)
    this.#child.stdout.on('error', () => undefined)
    this.#child.stderr.on('data', (chunk: Buffer) => {
      this.#errors = (this.#errors + chunk.toString()).slice(-keptErrorLength)
    })
  }

  get stdin(): Writable {
    return this.#child.stdin
  }

  get stdout(): Readable {
    return this.#child.stdout
  }

  /** The end of what it wrote to stderr. */
  get errors(): string {
    return this.#errors.trim()
  }

  /** It has ended, or is being ended. */
  get isEnding(): boolean {
    return this.#gone !== undefined
  }

  /**
   * Ends it and all its processes; resolves when they are gone. With `isReadToEnd`, what it has written is read before `ended` resolves;
   * otherwise it is dropped.
   */
  end(reason: string, { isReadToEnd = false }: { isReadToEnd?: boolean } = {}): Promise<void> {
    this.#gone ??= this.#end(reason, isReadToEnd)
    return this.#gone
  }

  /** It does not read any more. Usually it is ending, which says why. */
  async #endDeaf(): Promise<void> {
    await settledWithin(this.#exit, { ms: quietEndMs })
    await this.end('It closed its stdin.', { isReadToEnd: true })
  }

  get #exit(): Promise<unknown> {
    return new Promise((resolve) => this.#child.once('exit', resolve))
  }

  async #end(reason: string, isReadToEnd: boolean): Promise<void> {
    const { pid, exitCode, signalCode, stdin, stdout, stderr } = this.#child
    const since = pid === undefined ? undefined : readProcess(pid)?.startTime
    stdin.destroy()
    if (!isReadToEnd) {
      this.#ended.resolve(reason)
      stdout.destroy()
    }
    if (pid === undefined) return
    if (exitCode === null && signalCode === null) await settledWithin(this.#exit, { ms: quietEndMs })
    await endTree(() => findTree({ pid, groupId: pid, mark: this.#mark, since: since ?? '0' }), askedEndMs)
    if (isReadToEnd) await readToEnd(stdout)
    this.#ended.resolve(reason)
    stdout.destroy()
    stderr.destroy()
  }
}

/** On a busy machine, what was written comes late, and its reader is slow. */
async function readToEnd(stdout: Readable): Promise<void> {
  const end = finished(stdout).catch(() => undefined)
  let before = ''
  for (let quiet = 0; quiet < quietReads; quiet++) {
    if ((await settledWithin(end, { ms: quietReadMs })) === 'settled') return
    const now = `${(stdout as Socket).bytesRead} ${stdout.readableLength}`
    if (now !== before) quiet = 0
    before = now
  }
}
