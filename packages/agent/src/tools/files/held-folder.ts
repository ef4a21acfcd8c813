import { constants } from 'node:fs'
import { mkdir, open, realpath, lstat, type FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { confirmPath, descriptorPath, hasDescriptorPaths, movedProblem, openRegularFile } from './confirm-path.ts'
import { hasCode } from '../tool-problem.ts'
import { missingProblem } from './paths.ts'

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants

/**
 * A folder that is held open: operations apply to it even if its path now leads elsewhere. That is exact on
 * Linux. Elsewhere names go through the path again, and `confirm` narrows the race.
 */
export class HeldFolder implements AsyncDisposable {
  readonly path: string
  /** Windows cannot open a folder. */
  readonly #handle: FileHandle | undefined

  private constructor(path: string, handle: FileHandle | undefined) {
    this.path = path
    this.#handle = handle
  }

  /** `path` is as it was judged: absolute, without symbolic links. */
  static async open(path: string): Promise<HeldFolder> {
    return HeldFolder.#openAt(path, path)
  }

  /** Creates the missing parts of the path, each inside of the folder confirmed before. */
  static async make(path: string): Promise<HeldFolder> {
    try {
      return await HeldFolder.open(path)
    } catch (error) {
      if (!hasCode(error, 'ENOENT') || dirname(path) === path) throw error
    }
    await using parent = await HeldFolder.make(dirname(path))
    const place = parent.entry(basename(path))
    await mkdir(place).catch((error: unknown) => {
      if (!hasCode(error, 'EEXIST')) throw error
    })
    await parent.sync()
    return await HeldFolder.#openAt(place, path)
  }

  static async #openAt(place: string, path: string): Promise<HeldFolder> {
    const handle = process.platform === 'win32' ? undefined : await open(place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    const folder = new HeldFolder(path, handle)
    try {
      await folder.confirm()
    } catch (error) {
      await folder[Symbol.asyncDispose]()
      throw error
    }
    return folder
  }

  /** The path of a name in this folder, for system calls only, not for display. */
  entry(name: string): string {
    return join(this.#place, name)
  }

  /** The folder as a path that a child process can enter. */
  get workingFolder(): string {
    return this.#place.replace('/proc/self/', `/proc/${process.pid}/`)
  }

  async confirm(): Promise<void> {
    if (this.#handle) await confirmPath(this.#handle, this.path)
    else if ((await realpath(this.path)) !== this.path) throw movedProblem(this.path)
  }

  async sync(): Promise<void> {
    await this.#handle?.sync()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle?.close()
  }

  get #place(): string {
    return this.#handle && hasDescriptorPaths ? descriptorPath(this.#handle) : this.path
  }
}

/** The start of a search: a folder or one file, held open so that it stays the one that was judged. */
type SearchPlace =
  | { type: 'folder'; folder: HeldFolder; [Symbol.asyncDispose](): Promise<void> }
  | { type: 'file'; file: FileHandle; [Symbol.asyncDispose](): Promise<void> }

export async function openSearchPlace(path: string, place: { cwd: string }): Promise<SearchPlace> {
  try {
    if ((await lstat(path)).isDirectory()) {
      const folder = await HeldFolder.open(path)
      return { type: 'folder', folder, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
    }
    const file = await openRegularFile(path)
    return { type: 'file', file, [Symbol.asyncDispose]: () => file.close() }
  } catch (error) {
    throw hasCode(error, 'ENOENT', 'ENOTDIR') ? await missingProblem(path, place) : error
  }
}
