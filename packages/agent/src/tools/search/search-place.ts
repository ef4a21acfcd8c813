import { lstat, type FileHandle } from 'node:fs/promises'
import { HeldFolder } from '../files/held-folder.ts'
import { missingProblem } from '../files/missing-path.ts'
import { openRegularFile } from '../files/regular-file.ts'
import { hasCode } from '../tool-problem.ts'

/** The start of a search: a folder or one file, held open so that it stays the one that was judged. */
export type SearchPlace =
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
