import type { Session, SessionStore } from '@tapetree/session'
import { openFileStore } from '@tapetree/session/stores/file'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCli } from '../cli.ts'
import type { ExitCode } from '../command-line/exit-code.ts'
import { testIo, type TestIoOptions } from './test-io.ts'

export interface Ran {
  code: ExitCode
  out: string
  err: string
}

/** A home with sessions, and the command in it. */
export class SessionHome implements AsyncDisposable {
  readonly root: string
  readonly cwd: string
  readonly env: Record<string, string>
  readonly store: SessionStore

  private constructor(root: string) {
    this.root = root
    this.cwd = join(root, 'work')
    this.env = { HOME: root, TAPETREE_HOME: join(root, 'tapetree'), XDG_RUNTIME_DIR: root }
    this.store = openFileStore({ folder: join(root, 'tapetree', 'sessions') })
  }

  static async make(): Promise<SessionHome> {
    const root = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-sessions-')))
    await mkdir(join(root, 'work'))
    await mkdir(join(root, 'tapetree', 'sessions'), { recursive: true })
    return new SessionHome(root)
  }

  /** Creates a session in the working folder and returns its id. */
  async session(fill: (session: Session) => Promise<unknown>, options: { cwd?: string } = {}): Promise<string> {
    await using session = await this.store.create({ cwd: options.cwd ?? this.cwd })
    await fill(session)
    return session.id
  }

  logOf(id: string): string {
    return join(this.root, 'tapetree', 'sessions', id, 'events.jsonl')
  }

  async run(args: readonly string[], options: TestIoOptions = {}): Promise<Ran> {
    const io = testIo({ cwd: this.cwd, home: this.root, ...options, env: { ...this.env, ...options.env } })
    const code = await runCli(args, io)
    return { code, out: io.out(), err: io.err() }
  }

  /** What it prints with `--json`. */
  async json(...args: string[]): Promise<Record<string, unknown>> {
    const { code, out, err } = await this.run([...args, '--json'])
    if (code !== 0 && out === '') throw new Error(err)
    return JSON.parse(out) as Record<string, unknown>
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close()
    await rm(this.root, { recursive: true, force: true, maxRetries: 3 })
  }
}
