import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { attach, type Command } from './command.ts'
import type { CommandExit } from './exit-file.ts'
import { joinPieces, plainText } from './shown-output.ts'
import type { StartDetails } from '../tool.ts'

const idPattern = /^job-[0-9a-f]{12}$/
const temporaryPrefix = 'tapetree-jobs-'
const jobMark = 'job'
/** How long an ended job can still be read. */
const keepEndedMs = 24 * 60 * 60 * 1000
/** The folder of a command that is about to begin looks like one that never will. */
const keepUnclaimedMs = 60 * 60 * 1000

/** A command in the background. */
export interface Job {
  id: string
  /** Without secrets. Empty if it is not known. */
  command: string
  /** When it went to the background, in ISO 8601. */
  startedAt: string
  /** `lost`: it is gone, and its outcome was not recorded. */
  status: 'running' | 'ended' | 'lost'
  exit?: Pick<CommandExit, 'cause' | 'code' | 'signal' | 'durationMs'>
}

/** The newest output of a job, as plain text. */
export interface JobOutput {
  job: Job
  text: string
  /** Offset of the next byte. */
  end: number
  /** Whether older output was left out. */
  isCut: boolean
}

export interface ReadJobOptions {
  /** At most this many of the newest bytes. */
  limitBytes: number
  /** Waits until there is output after this offset, or the job has ended. */
  after?: number
  /** Ends the wait. */
  signal?: AbortSignal
}

export function newJobId(): string {
  return `job-${randomBytes(6).toString('hex')}`
}

/**
 * The commands of one session, each in its own folder below `spool`. A job is a command in the background. Its
 * folder holds its whole state, so it survives a restart.
 */
export class Jobs {
  #temporary: Promise<string> | undefined

  /** Creates the folder of a command. Ids are never reused. */
  async create(id: string, localFolder: string | undefined): Promise<string> {
    const folder = await this.pathOf(id, localFolder)
    await mkdir(dirname(folder), { recursive: true, mode: 0o700 })
    await mkdir(folder, { mode: 0o700 })
    return folder
  }

  async pathOf(id: string, localFolder: string | undefined): Promise<string> {
    return join(localFolder === undefined ? await this.#temporaryRoot() : join(localFolder, 'spool'), id)
  }

  /** The folder that `tool_start` names, even if the session has moved since. Undefined if it is not one of ours. */
  folderOf({ spool = '' }: StartDetails, localFolder: string | undefined): string | undefined {
    const id = basename(spool)
    if (!idPattern.test(id)) return undefined
    if (localFolder !== undefined) return join(localFolder, 'spool', id)
    const root = dirname(spool)
    return dirname(root) === tmpdir() && basename(root).startsWith(temporaryPrefix) ? spool : undefined
  }

  /** @internal Makes the command a job: its folder outlives the result of its call. `text` is the command without secrets. */
  async keep(command: Command, text = ''): Promise<string> {
    await writeFile(join(command.spool, jobMark), JSON.stringify({ command: text }), { mode: 0o600 })
    return basename(command.spool)
  }

  /** The running jobs of a session, and those that ended recently; the newest first. */
  async list(localFolder: string | undefined): Promise<Job[]> {
    const root = localFolder === undefined ? await this.#temporary : join(localFolder, 'spool')
    if (root === undefined) return []
    const ids = (await readdir(root).catch(() => [])).filter((id) => existsSync(join(root, id, jobMark)))
    const jobs = await Promise.all(ids.map((id) => describeJob(attach(join(root, id)))))
    return jobs.sort((left, right) => Date.parse(right.startedAt) - Date.parse(left.startedAt))
  }

  /** The newest output of a job. Undefined if this session has no such job. */
  async read(id: string, localFolder: string | undefined, options: ReadJobOptions): Promise<JobOutput | undefined> {
    const { limitBytes, after, signal } = options
    const command = await this.find(id, localFolder)
    if (!command) return undefined
    if (after !== undefined) await untilOutput(command, after, signal)
    // In this order: the state does not say that it has ended before all of its output is read.
    const job = await describeJob(command)
    const { end } = await command.output({ limitBytes: 0 })
    const from = Math.max(0, end - limitBytes)
    const output = await command.output({ from })
    return { job, text: plainText(joinPieces(output, from)), end: output.end, isCut: from > 0 }
  }

  /** Stops a job with all of its processes for the user; the model is told so. Undefined if this session has no such job. */
  async stop(id: string, localFolder: string | undefined): Promise<Job | undefined> {
    const command = await this.find(id, localFolder)
    if (!command) return undefined
    const outcome = await command.stop('the user')
    if (outcome.type === 'lost') await command.endStrays()
    return describeJob(command)
  }

  /** @internal Undefined if this session has no such job. */
  async find(id: string, localFolder: string | undefined): Promise<Command | undefined> {
    if (!idPattern.test(id) || (localFolder === undefined && this.#temporary === undefined)) return undefined
    const folder = await this.pathOf(id, localFolder)
    return existsSync(join(folder, jobMark)) ? attach(folder) : undefined
  }

  /** Called when the result of a command is durable: removes its folder, unless it is a job. */
  async removeSpool(start: StartDetails, localFolder: string | undefined): Promise<void> {
    const folder = this.folderOf(start, localFolder)
    if (folder === undefined || start.host !== hostname() || existsSync(join(folder, jobMark))) return
    if ((await attach(folder).state()).type === 'running') return
    await rm(folder, { recursive: true, force: true })
  }

  /** Removes folders left by a crash, and jobs that ended long ago. `open` are the starts of calls without a result. */
  async sweep(localFolder: string, open: readonly StartDetails[]): Promise<void> {
    const root = join(localFolder, 'spool')
    const needed = new Set(open.map(({ spool = '' }) => basename(spool)))
    for (const id of await readdir(root).catch(() => [])) {
      const folder = join(root, id)
      if (idPattern.test(id) && !needed.has(id) && (await isForgotten(folder))) {
        await rm(folder, { recursive: true, force: true })
      }
    }
  }

  /** Whether a command runs in the background. */
  async hasRunning(localFolder: string | undefined): Promise<boolean> {
    const root = localFolder === undefined ? await this.#temporary : join(localFolder, 'spool')
    if (root === undefined) return false
    const ids = (await readdir(root).catch(() => [])).filter((id) => existsSync(join(root, id, jobMark)))
    const states = await Promise.all(ids.map((id) => attach(join(root, id)).state()))
    return states.some(({ type }) => type === 'running')
  }

  /** Stops every running command of a session, for example before the session is erased. */
  async stopAll(localFolder: string): Promise<void> {
    const root = join(localFolder, 'spool')
    const ids = (await readdir(root).catch(() => [])).filter((id) => idPattern.test(id))
    await Promise.all(
      ids.map(async (id) => {
        if ((await attach(join(root, id)).state()).type === 'running') await stopAt(join(root, id))
      }),
    )
  }

  /** Ends the jobs of a session without a local folder, because they could not be found again. */
  async close(): Promise<void> {
    const root = await this.#temporary
    if (root === undefined) return
    this.#temporary = undefined
    await Promise.all((await readdir(root)).map((id) => stopAt(join(root, id))))
    await rm(root, { recursive: true, force: true })
  }

  #temporaryRoot(): Promise<string> {
    this.#temporary ??= mkdtemp(join(tmpdir(), temporaryPrefix))
    return this.#temporary
  }
}

/** The folder of a command is removed as soon as its result is durable, also while it is being stopped. */
async function stopAt(folder: string): Promise<void> {
  try {
    await attach(folder).stop()
  } catch (error) {
    if (existsSync(folder)) throw error
  }
}

async function describeJob(command: Command): Promise<Job> {
  const mark = join(command.spool, jobMark)
  const state = await command.state()
  const [text, stats] = await Promise.all([readFile(mark, 'utf8').catch(() => ''), stat(mark).catch(() => undefined)])
  const job = {
    id: basename(command.spool),
    command: commandIn(text),
    startedAt: new Date(stats?.mtimeMs ?? 0).toISOString(),
  }
  if (state.type !== 'ended') return { ...job, status: state.type === 'running' ? 'running' : 'lost' }
  const { cause, code, signal, durationMs } = state.exit
  return { ...job, status: 'ended', exit: { cause, code, signal, durationMs } }
}

/** Jobs of older versions have an empty mark. */
function commandIn(mark: string): string {
  try {
    const { command } = JSON.parse(mark) as { command?: unknown }
    return typeof command === 'string' ? command : ''
  } catch {
    return ''
  }
}

async function untilOutput(command: Command, after: number, signal: AbortSignal | undefined): Promise<void> {
  const seen = new AbortController()
  const onOutput = ({ offset, bytes }: { offset: number; bytes: Uint8Array }): void => {
    if (offset + bytes.length > after) seen.abort()
  }
  const either = signal ? AbortSignal.any([seen.signal, signal]) : seen.signal
  await command.wait({ signal: either, onOutput }).catch(() => undefined)
}

async function isForgotten(folder: string): Promise<boolean> {
  const state = await attach(folder).state()
  const changedAt = (await stat(folder).catch(() => undefined))?.mtimeMs ?? 0
  const ageMs = Date.now() - changedAt
  switch (state.type) {
    case 'running':
      return false
    case 'unclaimed':
      return ageMs > keepUnclaimedMs
    case 'ended':
    case 'lost':
      return !existsSync(join(folder, jobMark)) || ageMs > keepEndedMs
    default:
      state satisfies never
      return false
  }
}
