import type { ModelReference, Session, SessionStore } from '@tapetree/session'
import type { TreeNode } from '@tapetree/session/view'
import {
  backgroundJob,
  jobOutputBytes,
  type BackgroundJobs,
  type OfferedModel,
  type OpenedSession,
  type SessionSource,
} from '../session-source.ts'
import { changeSession } from './claim-or-attach.ts'
import type { SessionHost } from './session-host.ts'
import type { Jobs } from '@tapetree/agent/tools'
import { referenceOf, type ListedModel, type ModelRegistry } from '@tapetree/agent/models'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { opendir } from 'node:fs/promises'
import { join } from 'node:path'

export interface LocalSourceOptions {
  host: SessionHost
  store: SessionStore
  /** The working folder of new sessions. */
  cwd: string
  /** The model of new sessions, if one was chosen. */
  model?: ModelReference | undefined
  models: () => Promise<OfferedModel[]>
}

export interface LocalSource extends SessionSource {
  /** The sessions that `create` has made, oldest first. */
  readonly made: readonly string[]
  /** The working folder of the session that was opened last, which is the one that a chat shows. */
  readonly folder: string
}

/** The sessions of this user on this machine, including those that other processes own. */
export function localSource({ host, store, cwd, model, models }: LocalSourceOptions): LocalSource {
  let files = new FileMatches(cwd)
  const made: string[] = []
  const shown = (opened: OpenedSession): OpenedSession => {
    const folder = opened.cwd ?? cwd
    if (folder !== files.root) files = new FileMatches(folder)
    return opened
  }
  return {
    open: async (sessionId) => shown(await host.open(sessionId)),
    made,
    get folder() {
      return files.root
    },
    create: async () => {
      const opened = await host.openNew({ cwd, ...(model && { model }) })
      made.push(opened.handle.sessionId)
      return shown(opened)
    },
    fork: async (sessionId, entryId) => {
      const forked = await reading(sessionId, (session) =>
        entryId === undefined ? session.copyAll() : session.createBranchedSession(entryId),
      )
      return shown(await host.open(forked))
    },
    list: async (query) => (await store.list(query)).sessions,
    rename: async (sessionId, name) => {
      await changeSession<unknown>(store, sessionId, {
        here: (session) => session.appendSessionInfo(name),
        there: (handle) => handle.run('rename', { name }),
      })
    },
    archive: (sessionId) => host.putAway(sessionId, 'archive'),
    delete: (sessionId) => host.putAway(sessionId, 'trash'),
    search: (text) => store.search({ text }),
    models,
    tree: (sessionId): Promise<TreeNode[]> => reading(sessionId, (session) => session.getTree()),
    compare: (sessionId, entries) => reading(sessionId, (session) => host.compare(session, entries)),
    files: (query) => files.matching(query),
    keepImage: (sessionId, image) => host.keepImage(sessionId, image),
    jobs: localJobs((sessionId) => reading(sessionId, async ({ localFolder }) => localFolder)),
    close: () => host.close(),
  }

  async function reading<T>(sessionId: string, read: (session: Session) => Promise<T>): Promise<T> {
    await using session = await store.open(sessionId, { readOnly: true })
    return await read(session)
  }
}

function localJobs(folderOf: (sessionId: string) => Promise<string | undefined>): BackgroundJobs {
  const jobs = async (): Promise<Jobs> => new (await import('@tapetree/agent/tools')).Jobs()
  return {
    list: async (sessionId) => (await (await jobs()).list(await folderOf(sessionId))).map(backgroundJob),
    read: async (sessionId, jobId) => {
      const output = await (await jobs()).read(jobId, await folderOf(sessionId), { limitBytes: jobOutputBytes })
      return output && { job: backgroundJob(output.job), text: output.text, isCut: output.isCut }
    },
    stop: async (sessionId, jobId) => void (await (await jobs()).stop(jobId, await folderOf(sessionId))),
  }
}

/** All available models, including those of servers on this machine. */
export async function offeredModels(registry: ModelRegistry): Promise<OfferedModel[]> {
  await registry.discover()
  return (await registry.list()).map(offered)
}

function offered(model: ListedModel): OfferedModel {
  const { provider, id, name, contextWindow, thinkingLevels, key } = model
  return {
    reference: referenceOf(model),
    provider,
    modelId: id,
    name,
    ...(contextWindow !== undefined && { contextTokens: contextWindow }),
    thinkingLevels,
    isUsable: key.type !== 'missing',
  }
}

interface ListFilesOptions {
  /** Defaults to the bundled one; tests may pass another. */
  ripgrep?: string
}

/** Folders with more entries are not read completely. */
const maxListed = 100_000
/** Without ripgrep it takes longer. */
const maxWalked = 20_000
const listMs = 10_000

/** Folders of generated files, skipped even without a `.gitignore`. */
const leftOut = ['.git', 'node_modules', 'target', '__pycache__']

/** Ignore files also apply outside a repository, as for the agent's tools. */
const fixedArguments = ['--no-config', '--no-messages', '--no-require-git', '--files', '--hidden', '--null']

/** The paths below a folder, except those that `.gitignore` excludes. Folders end with `/`. Does not follow links. */
export async function listFiles(root: string, options: ListFilesOptions = {}): Promise<string[]> {
  try {
    const program = options.ripgrep ?? (await import('@vscode/ripgrep')).rgPath
    const files = await ripgrepFiles(program, root)
    return [...foldersOf(files), ...files]
  } catch {
    return walk(root) // there is no ripgrep for this machine
  }
}

async function ripgrepFiles(program: string, root: string): Promise<string[]> {
  const globs = leftOut.map((name) => `--glob=!${name}`)
  const child = spawn(program, [...fixedArguments, ...globs], {
    cwd: root,
    env: {},
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: listMs,
  })
  const ended = once(child, 'close')
  const files: string[] = []
  let rest = ''
  child.stdout.setEncoding('utf8')
  child.stdout.on('data', (text: string) => {
    const parts = (rest + text).split('\0')
    rest = parts.pop() ?? ''
    files.push(...parts)
    if (files.length >= maxListed) child.kill()
  })
  await ended
  return files.slice(0, maxListed)
}

function foldersOf(files: readonly string[]): Set<string> {
  const folders = new Set<string>()
  for (const file of files) {
    for (let end = file.lastIndexOf('/'); end > 0; end = file.lastIndexOf('/', end - 1)) {
      const folder = file.slice(0, end + 1)
      if (folders.has(folder)) break
      folders.add(folder)
    }
  }
  return folders
}

/** Breadth first, so that nearby files are found even if the limit is reached. */
async function walk(root: string): Promise<string[]> {
  const found: string[] = []
  const folders = ['']
  for (let folder = folders.shift(); folder !== undefined && found.length < maxWalked; folder = folders.shift()) {
    // An unreadable folder adds no paths.
    const entries = await opendir(join(root, folder)).catch(() => undefined)
    if (!entries) continue
    for await (const entry of entries) {
      if (leftOut.includes(entry.name)) continue
      const isFolder = entry.isDirectory()
      const path = `${folder}${entry.name}${isFolder ? '/' : ''}`
      found.push(path)
      if (isFolder) folders.push(path)
      if (found.length >= maxWalked) break
    }
  }
  return found
}

const maxFound = 50
/** Reuses a list while the user types. */
const freshMs = 5000

/** The paths below a folder that match the typed text. Skips hidden files unless the text begins with a dot. */
class FileMatches {
  readonly root: string
  #seen: Promise<string[]> | undefined
  #seenAt = 0

  constructor(root: string) {
    this.root = root
  }

  async matching(typed: string): Promise<string[]> {
    const wanted = typed.toLowerCase()
    const hidden = /(?:^|\/)\./.test(typed)
    const paths = await this.#paths()
    return paths
      .filter((path) => hidden || !/(?:^|\/)\./.test(path))
      .map((path) => ({ path, rank: rankOf(path.toLowerCase(), wanted) }))
      .filter(({ rank }) => rank < Infinity)
      .sort(
        (left, right) =>
          left.rank - right.rank || left.path.length - right.path.length || (left.path < right.path ? -1 : 1),
      )
      .slice(0, maxFound)
      .map(({ path }) => path)
  }

  #paths(): Promise<string[]> {
    const now = Date.now()
    if (!this.#seen || now - this.#seenAt > freshMs) {
      this.#seen = listFiles(this.root)
      this.#seenAt = now
    }
    return this.#seen
  }
}

/** Ranks matches: start of the path, start of the name, substring, then subsequence. */
function rankOf(path: string, wanted: string): number {
  if (path.startsWith(wanted)) return 0
  const name = path.slice(path.lastIndexOf('/', path.length - 2) + 1)
  if (name.startsWith(wanted)) return 1
  if (path.includes(wanted)) return 2
  return hasLetters(path, wanted) ? 3 : Infinity
}

function hasLetters(path: string, wanted: string): boolean {
  let from = 0
  for (const letter of wanted) {
    const at = path.indexOf(letter, from)
    if (at === -1) return false
    from = at + letter.length
  }
  return true
}
