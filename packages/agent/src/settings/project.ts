import { sha256Of } from '../util/request-hash.ts'
import { lstat, readdir, realpath } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { isInside } from '../util/is-inside.ts'
import { readBounded } from './config-files.ts'

export interface ProjectFile {
  /** From the root of the repository, with `/`. */
  path: string
  /** The real path, absolute and without links. */
  realPath: string
  bytes: Uint8Array
  /** Of the bytes, in hex. */
  sha256: string
}

export interface LeftOut {
  path: string
  reason: string
}

/** The configuration and instructions of a repository, as bytes that were read once. Nothing of it is in force. */
export interface ProjectContent {
  /** Without links. */
  root: string
  /** The folders from the root to the working folder, from the root: `''`, `packages`, `packages/agent`. */
  folders: string[]
  /** Configuration: all of `.tapetree` and `.agents` in these folders, in the order of their paths. */
  files: ProjectFile[]
  /** AGENTS.md and CLAUDE.md in these folders: text for the model. It sets nothing and starts nothing. */
  instructions: ProjectFile[]
  leftOut: LeftOut[]
  /** False: a limit was reached, so the content is not completely known. */
  isComplete: boolean
}

export const projectLimits = { fileBytes: 1024 * 1024, totalBytes: 16 * 1024 * 1024, entries: 1000, depth: 8 } as const

const configurationFolders = ['.agents', '.tapetree']
const instructionFiles = ['AGENTS.md', 'CLAUDE.md']

/**
 * The repository around a folder, or the folder itself if there is none. Git does not run, because a repository can
 * make it run programs. The content of `.git` is not read.
 */
export async function findProjectRoot(cwd: string): Promise<string> {
  const start = await realpath(cwd)
  for (let folder = start; ; folder = dirname(folder)) {
    const marker = await lstat(join(folder, '.git')).catch(() => undefined)
    if (marker && (marker.isDirectory() || marker.isFile() || marker.isSymbolicLink())) return folder
    if (folder === dirname(folder)) return start
  }
}

export async function readProject(root: string, cwd: string = root): Promise<ProjectContent> {
  const realRoot = await realpath(root)
  const reader = new ProjectReader(realRoot)
  const folders = foldersBetween(realRoot, await realpath(cwd))
  const files: ProjectFile[] = []
  const instructions: ProjectFile[] = []
  for (const folder of folders) {
    for (const name of configurationFolders) files.push(...(await reader.read(join(folder, name))))
    for (const name of instructionFiles) instructions.push(...(await reader.read(join(folder, name))))
  }
  files.sort((left, right) => (left.path < right.path ? -1 : 1))
  return { root: realRoot, folders, files, instructions, leftOut: reader.leftOut, isComplete: reader.isComplete }
}

function foldersBetween(root: string, cwd: string): string[] {
  if (!isInside(cwd, root)) return ['']
  const names = relative(root, cwd).split(sep).filter(Boolean)
  return ['', ...names.map((_, index) => names.slice(0, index + 1).join('/'))]
}

class ProjectReader {
  readonly leftOut: LeftOut[] = []
  isComplete = true
  readonly #root: string
  #bytesLeft: number = projectLimits.totalBytes
  /** Files, folders and links, counted for every path that leads there. */
  #entriesLeft: number = projectLimits.entries

  constructor(root: string) {
    this.#root = root
  }

  async read(path: string): Promise<ProjectFile[]> {
    return this.#visit(path, [])
  }

  /** `above` are the real paths of the folders that led here. */
  async #visit(path: string, above: readonly string[]): Promise<ProjectFile[]> {
    if (this.#entriesLeft <= 0) return []
    const real = await this.#follow(path)
    if (real === undefined) return []
    this.#entriesLeft--
    if (this.#entriesLeft === 0) return this.#giveUp(path, `There are more than ${projectLimits.entries} files.`)
    const stats = await lstat(real).catch(() => undefined)
    if (!stats?.isDirectory()) return this.#readFile(path, real)
    if (above.includes(real)) return this.#leaveOut(path, 'It is a cyclic link.')
    if (above.length >= projectLimits.depth) return this.#giveUp(path, 'It is nested too deeply.')
    const files: ProjectFile[] = []
    const names = await readdir(real).catch((error: unknown) => {
      const { code = 'unknown error' } = error as NodeJS.ErrnoException
      this.#leaveOut(path, `It cannot be read (${code}).`)
      return []
    })
    // Names that are not UTF-8 may become equal.
    for (const name of [...new Set(names)].sort()) {
      if (this.#entriesLeft <= 0) return files
      files.push(...(await this.#visit(join(path, name), [...above, real])))
    }
    return files
  }

  /** The target of a link, if it is in the repository. */
  async #follow(path: string): Promise<string | undefined> {
    const whole = join(this.#root, path)
    const stats = await lstat(whole).catch(() => undefined)
    if (!stats) return undefined
    try {
      const real = await realpath(whole)
      if (isInside(real, this.#root)) return real
      this.#leaveOut(path, 'It is a link that leaves the repository.')
    } catch (error) {
      const isCircle = (error as NodeJS.ErrnoException).code === 'ELOOP'
      this.#leaveOut(path, `It is a ${isCircle ? 'cyclic' : 'dangling'} link.`)
    }
    return undefined
  }

  async #readFile(path: string, real: string): Promise<ProjectFile[]> {
    const result = await readBounded(real, projectLimits.fileBytes)
    if (result.type === 'missing') return []
    if (result.type === 'refused') return this.#leaveOut(path, result.reason)
    const { bytes } = result
    this.#bytesLeft -= bytes.length
    if (this.#bytesLeft < 0) {
      this.#entriesLeft = 0
      return this.#giveUp(path, `There are more than ${projectLimits.totalBytes / 1024 / 1024} MiB.`)
    }
    return [{ path: path.split(sep).join('/'), realPath: real, bytes, sha256: sha256Of(bytes) }]
  }

  #leaveOut(path: string, reason: string): [] {
    this.leftOut.push({ path: path.split(sep).join('/'), reason })
    return []
  }

  #giveUp(path: string, reason: string): [] {
    this.isComplete = false
    return this.#leaveOut(path, reason)
  }
}
