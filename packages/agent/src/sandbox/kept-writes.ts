import { createHash } from 'node:crypto'
import { existsSync, type Stats } from 'node:fs'
import { chmod, cp, lstat, mkdir, open, readdir, readFile, readlink, realpath, rename, rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { createRedactor, defaultPolicy } from '@tapetree/redact'
import { replaceFile } from '@tapetree/session/util/replace-file'
import type { BlockedDraft, RecordBlocked, TakenBack } from '../tools/commands/command.ts'
import { isInside } from '../util/is-inside.ts'
import { messageOf } from '../util/message-of.ts'

/** A control file or folder that a command made. It was moved out of the working folder, and the user may apply it. */
export interface KeptWrite {
  id: string
  /** Relative to the working folder. */
  path: string
  /** The call that made it. Absent: a hook did. */
  callId?: string
  /** The first of its files, with their contents. */
  files: KeptFile[]
  fileCount: number
  /** Something is at its path now, so it cannot be applied. */
  isOccupied: boolean
}

export interface KeptFile {
  /** Relative to the working folder, or to the home folder. */
  path: string
  sizeBytes: number
  /** The beginning of its text, without secrets. Absent: it is not text. */
  text?: string
  /** The text is longer. */
  isCut?: true
  /** It is a link to this path. */
  target?: string
}

/** What commands wrote to the home folder. It is kept for later commands and never reaches the home folder itself. */
export interface HomeWrites {
  /** Where it is kept. */
  folder: string
  /** The first of the files, without contents. */
  files: KeptFile[]
  fileCount: number
}

/** Everything that commands wrote and that is not where they wrote it. */
export interface BlockedWrites {
  /** The oldest first. */
  writes: KeptWrite[]
  /** Absent if the session has no sandbox. */
  home?: HomeWrites
}

export interface KeptWritesPlace {
  /** The folder of the sandbox of this working folder. */
  keep: string
  cwd: string
}

/** Why a kept write cannot be applied or discarded. */
export class KeptWriteError extends Error {
  readonly code: 'write-not-found' | 'write-not-applicable'

  constructor(code: KeptWriteError['code'], message: string) {
    super(message)
    this.name = 'KeptWriteError'
    this.code = code
  }
}

/** The files that one command made. */
export interface KeptGroup {
  callId?: string
  /** By absolute path: the name of the file in the folder of the group. */
  moved: Record<string, string>
}

const maxFiles = 20
const maxTextBytes = 16 * 1024
const maxHomeFiles = 50
/** Later files are neither shown nor counted. */
const maxVisited = 20_000
/** The oldest are forgotten. They count only for commands that were started before the user applied them. */
const maxAgreed = 200

/**
 * The control files that commands in a working folder made and that are not in it any more. Each command has a folder with their list:
 * `moved.json` until the user was asked about them, then `left.json`.
 */
export class KeptWrites {
  readonly #place: KeptWritesPlace

  constructor(place: KeptWritesPlace) {
    this.#place = place
  }

  /** The oldest first. */
  async list(): Promise<KeptWrite[]> {
    const writes: { at: number; write: KeptWrite }[] = []
    for (const name of await readdir(this.#folder).catch(() => [])) {
      const group = await readGroup(join(this.#folder, name))
      for (const [path, place] of Object.entries(group?.moved ?? {})) {
        const at = (await lstat(join(this.#folder, name, place)).catch(() => undefined))?.ctimeMs
        if (at !== undefined && group) writes.push({ at, write: await this.#describe({ name, group, path, place }) })
      }
    }
    return writes.toSorted((a, b) => a.at - b.at).map(({ write }) => write)
  }

  async home(): Promise<HomeWrites> {
    const folder = join(this.#place.keep, 'home-written')
    const files = await filesIn(folder, { below: '', limit: maxHomeFiles })
    return { folder, files: files.shown, fileCount: files.count }
  }

  /** Moves it back to its path. */
  async apply(id: string, record: RecordBlocked): Promise<void> {
    const { name, group, path, place } = await this.#find(id)
    await this.#requireFree(path)
    await record(this.#draft({ name, group, path, place }, 'applied'))
    const kept = join(this.#folder, name, place)
    await this.#agree(path, await digestOf(kept))
    await move(kept, path)
    await this.#forget({ name, group, path })
  }

  /** Deletes it. */
  async discard(id: string, record: RecordBlocked): Promise<void> {
    const { name, group, path, place } = await this.#find(id)
    await record(this.#draft({ name, group, path, place }, 'discarded'))
    await rm(join(this.#folder, name, place), { recursive: true, force: true })
    await this.#forget({ name, group, path })
  }

  /** Moves these files out of the working folder, and adds those that an earlier process moved for the same command. */
  async take(name: string, paths: readonly string[], callId?: string): Promise<Pick<TakenBack, 'writes' | 'unmoved'>> {
    const folder = join(this.#folder, name)
    const before = await readJson(join(folder, 'moved.json'))
    const moved = new Map(Object.entries((before as KeptGroup | undefined)?.moved ?? {}))
    const next = 1 + Math.max(-1, ...[...moved.values()].map(Number))
    for (const [index, path] of paths.entries()) moved.set(path, String(next + index))
    if (moved.size === 0) return { writes: [], unmoved: [] }
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const writeList = (): Promise<void> => {
      const group: KeptGroup = { ...(callId !== undefined && { callId }), moved: Object.fromEntries(moved) }
      return replaceFile(join(folder, 'moved.json'), JSON.stringify(group))
    }
    await writeList()
    const unmoved: { path: string; reason: string }[] = []
    for (const path of paths) {
      try {
        await moveAway(path, join(folder, moved.get(path) ?? ''))
      } catch (error) {
        unmoved.push({ path: this.#shown(path), reason: messageOf(error) })
        moved.delete(path)
      }
    }
    if (unmoved.length > 0) await writeList()
    const writes = Array.from(moved, ([path, place]) => ({ id: `${name}.${place}`, path: this.#shown(path) }))
    return { writes, unmoved }
  }

  /** The user was asked about them, and they stay out. */
  async leave(name: string): Promise<void> {
    const folder = join(this.#folder, name)
    await rename(join(folder, 'moved.json'), join(folder, 'left.json')).catch(unlessMissing)
  }

  /** Whether the user applied this file, or a folder with it, and nothing has changed there since. */
  async isAgreed(path: string): Promise<boolean> {
    for (const [applied, digest] of Object.entries(await this.#agreed()))
      if (isInside(path, applied) && digest === (await digestOf(applied))) return true
    return false
  }

  get #folder(): string {
    return join(this.#place.keep, 'taken-back')
  }

  get #agreedFile(): string {
    return join(this.#place.keep, 'agreed.json')
  }

  async #agreed(): Promise<Record<string, string>> {
    return ((await readJson(this.#agreedFile)) ?? {}) as Record<string, string>
  }

  async #agree(path: string, digest: string): Promise<void> {
    const { [path]: _, ...others } = await this.#agreed()
    const agreed = [...Object.entries(others), [path, digest]].slice(-maxAgreed)
    await replaceFile(this.#agreedFile, JSON.stringify(Object.fromEntries(agreed)))
  }

  async #find(id: string): Promise<{ name: string; group: KeptGroup; path: string; place: string }> {
    const [, name = '', place = ''] = /^([\w-]+)\.(\d+)$/.exec(id) ?? []
    const group = name === '' ? undefined : await readGroup(join(this.#folder, name))
    const path = Object.entries(group?.moved ?? {}).find(([, each]) => each === place)?.[0]
    if (!group || path === undefined || !existsSync(join(this.#folder, name, place)))
      throw new KeptWriteError('write-not-found', `There is no blocked write ${JSON.stringify(id)} in this folder.`)
    return { name, group, path, place }
  }

  /** A command may have put a link in place of a folder on the way. */
  async #requireFree(path: string): Promise<void> {
    const root = await realpath(this.#place.cwd)
    const existing = await nearest(dirname(path))
    if (!isInside(existing, root) || !isInside(await realpath(existing), root))
      throw new KeptWriteError(
        'write-not-applicable',
        `${this.#shown(path)} is not applied: its folder is not in the working folder any more.`,
      )
    if ((await lstat(path).catch(() => undefined)) !== undefined)
      throw new KeptWriteError(
        'write-not-applicable',
        `${this.#shown(path)} is not applied: it exists already. Move it away first.`,
      )
  }

  #draft(
    { name, group, path, place }: { name: string; group: KeptGroup; path: string; place: string },
    outcome: 'applied' | 'discarded',
  ): BlockedDraft {
    const what = this.#shown(path)
    const kept = `${name}.${place}`
    return { type: 'blocked', blocked: { callId: group.callId ?? '', kind: 'write', what, count: 1, kept, outcome } }
  }

  async #forget({ name, group, path }: { name: string; group: KeptGroup; path: string }): Promise<void> {
    const folder = join(this.#folder, name)
    const { [path]: _, ...moved } = group.moved
    if (Object.keys(moved).length === 0) return rm(folder, { recursive: true, force: true })
    const list = ['moved.json', 'left.json'].find((each) => existsSync(join(folder, each))) ?? 'left.json'
    await replaceFile(join(folder, list), JSON.stringify({ ...group, moved }))
  }

  async #describe(at: { name: string; group: KeptGroup; path: string; place: string }): Promise<KeptWrite> {
    const { name, group, path, place } = at
    const shown = this.#shown(path)
    const { shown: files, count } = await filesIn(join(this.#folder, name, place), {
      below: shown,
      limit: maxFiles,
      hasText: true,
    })
    return {
      id: `${name}.${place}`,
      path: shown,
      ...(group.callId !== undefined && { callId: group.callId }),
      files,
      fileCount: count,
      isOccupied: (await lstat(path).catch(() => undefined)) !== undefined,
    }
  }

  #shown(path: string): string {
    return relative(this.#place.cwd, path)
  }
}

async function readGroup(folder: string): Promise<KeptGroup | undefined> {
  const value = (await readJson(join(folder, 'moved.json'))) ?? (await readJson(join(folder, 'left.json')))
  return value as KeptGroup | undefined
}

async function readJson(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch(() => undefined)
  return text === undefined ? undefined : (JSON.parse(text) as unknown)
}

async function nearest(folder: string): Promise<string> {
  for (let each = folder; ; each = dirname(each)) if (existsSync(each) || each === dirname(each)) return each
}

/** Also out of a folder that a command made read-only. A folder that is moved changes itself: it gets another parent. */
async function moveAway(from: string, to: string): Promise<void> {
  try {
    await move(from, to)
  } catch (error) {
    if (!['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
    for (const each of [dirname(from), from]) {
      const info = await lstat(each)
      if (info.isDirectory()) await chmod(each, (info.mode & 0o7777) | 0o300)
    }
    await move(from, to)
  }
}

async function move(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    await cp(from, to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
    await rm(from, { recursive: true })
  }
}

interface FoundFile {
  path: string
  /** Relative to the searched one; empty for itself. */
  name: string
  info: Stats
}

/** A file itself, or the files in a folder at any depth, by name. Links are not followed. */
async function* walk(root: string): AsyncGenerator<FoundFile> {
  const info = await lstat(root).catch(() => undefined)
  if (!info?.isDirectory()) {
    if (info) yield { path: root, name: '', info }
    return
  }
  const names = ['']
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    const folder = join(root, name)
    const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const below = join(name, entry.name)
      if (entry.isDirectory()) names.push(below)
      else yield { path: join(root, below), name: below, info: await lstat(join(root, below)) }
    }
  }
}

async function filesIn(
  root: string,
  { below, limit, hasText = false }: { below: string; limit: number; hasText?: boolean },
): Promise<{ shown: KeptFile[]; count: number }> {
  const shown: KeptFile[] = []
  let count = 0
  for await (const { path, name, info } of walk(root)) {
    count += 1
    if (count >= maxVisited) break
    if (shown.length >= limit) continue
    const file = { path: join(below, name), sizeBytes: info.size }
    if (info.isSymbolicLink()) shown.push({ ...file, target: await readlink(path) })
    else shown.push({ ...file, ...(hasText && info.isFile() && (await beginningOf(path))) })
  }
  return { shown, count }
}

const redactor = createRedactor(defaultPolicy())

async function beginningOf(path: string): Promise<Pick<KeptFile, 'text' | 'isCut'>> {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(maxTextBytes + 1), 0, maxTextBytes + 1, 0)
  const bytes = buffer.subarray(0, Math.min(bytesRead, maxTextBytes))
  if (bytes.includes(0)) return {}
  return { text: redactor.text(bytes.toString()), ...(bytesRead > maxTextBytes && { isCut: true }) }
}

/** Of names, kinds, modes and contents. */
async function digestOf(root: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const { path, name, info } of walk(root)) {
    const content = info.isSymbolicLink() ? await readlink(path) : info.isFile() ? await readFile(path) : ''
    hash.update(`${JSON.stringify(name)} ${info.mode} ${content.length}\n`).update(content)
  }
  return hash.digest('hex')
}

function unlessMissing(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}
