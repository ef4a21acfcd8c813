import { isInside } from '@tapetree/agent/util/is-inside'
import type { fileListSchema, folderListSchema } from '@tapetree/client/protocol'
import type { Dirent } from 'node:fs'
import { opendir, stat, realpath } from 'node:fs/promises'
import { basename, dirname, join, posix, resolve, isAbsolute } from 'node:path'
import type { z } from 'zod'
import type { Caller } from '../../auth/operation-roles.ts'
import { RequestProblem } from '../../util/problem-error.ts'
import type { ApiParts } from '../app.ts'

type FolderList = z.infer<typeof folderListSchema>
type FileList = z.infer<typeof fileListSchema>

/** At most this many entries of a folder are read. */
const maxSeen = 5000
const maxFolders = 500

/** Subfolders that can be chosen. Names that begin with a dot are hidden. */
export async function listFolders(path: string | undefined, roots: readonly string[]): Promise<FolderList> {
  if (path === undefined) {
    const folders = roots.map((root) => ({ name: basename(root) || root, path: root }))
    return { path: null, parent: null, folders, has_more: false }
  }
  const folder = await folderInside(path, roots)
  const { seen, has_more } = await look(folder, ({ name }) => !name.startsWith('.'))
  const inside: string[] = []
  for (const each of seen) if ((await kindOf(folder, each, folder)) === 'folder') inside.push(each.name)
  const above = dirname(folder)
  const parent = await folderInside(above, roots).catch(() => null)
  return {
    path: folder,
    parent: parent === folder ? null : parent,
    folders: inside.slice(0, maxFolders).map((name) => ({ name, path: join(folder, name) })),
    has_more: has_more || inside.length > maxFolders,
  }
}

/** Files and folders whose paths start with the typed text. A path that leads out of the folder has none. */
export async function completeFiles(
  root: string,
  { typed, limit }: { typed: string; limit: number },
): Promise<FileList> {
  const none = { files: [], has_more: false }
  if (typed.includes('\0')) return none
  const cut = typed.lastIndexOf('/') + 1
  const [above, begin] = [typed.slice(0, cut), typed.slice(cut)]
  const wanted = resolve(root, above)
  const folder = isInside(wanted, root) ? await realOr(wanted, undefined) : undefined
  if (folder === undefined || !isInside(folder, root)) return none
  const { seen, has_more } = await look(
    folder,
    ({ name }) => name.toLowerCase().startsWith(begin.toLowerCase()) && (begin !== '' || !name.startsWith('.')),
  )
  const files: FileList['files'] = []
  for (const each of seen) {
    if (files.length === limit) return { files, has_more: true }
    const type = await kindOf(folder, each, root)
    if (type) files.push({ path: posix.join(above, each.name), type })
  }
  return { files, has_more }
}

async function look(
  folder: string,
  wanted: (entry: Dirent) => boolean,
): Promise<{ seen: Dirent[]; has_more: boolean }> {
  const found: Dirent[] = []
  let count = 0
  const open = await opendir(folder).catch(() => undefined)
  if (!open) return { seen: [], has_more: false }
  for await (const entry of open) {
    if (++count > maxSeen) break
    if (wanted(entry)) found.push(entry)
  }
  const seen = found.sort((left, right) => (left.name < right.name ? -1 : 1))
  return { seen, has_more: count > maxSeen }
}

/** Undefined for a path that leads out of the root, and for other kinds of files. */
async function kindOf(folder: string, entry: Dirent, root: string): Promise<'file' | 'folder' | undefined> {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  if (!entry.isSymbolicLink()) return undefined
  const real = await realOr(join(folder, entry.name), undefined)
  if (real === undefined || !isInside(real, root)) return undefined
  const found = await stat(real).catch(() => undefined)
  return found?.isDirectory() ? 'folder' : found?.isFile() ? 'file' : undefined
}

/** The folders that a caller may use: the roots of its tenant, or what its own folder has of them. */
export async function rootsFor(
  { tenant, folder }: Pick<Caller, 'tenant' | 'folder'>,
  { roots }: Pick<ApiParts, 'roots'>,
): Promise<readonly string[]> {
  const all = roots(tenant)
  if (folder === undefined) return all
  const real = await Promise.all(all.map((root) => realOr(root, root)))
  const inside = real.flatMap((root) => (isInside(folder, root) ? [folder] : isInside(root, folder) ? [root] : []))
  return [...new Set(inside)]
}

/** The real path of a folder inside one of the roots. Paths outside are rejected without reading them. */
export async function folderInside(path: string, roots: readonly string[]): Promise<string> {
  if (!isAbsolute(path)) throw new RequestProblem(422, 'not-absolute', 'The path of the folder must be absolute.')
  const wanted = resolve(path)
  const realRoots = await Promise.all(roots.map((root) => realOr(root, root)))
  if (![...roots.map((root) => resolve(root)), ...realRoots].some((root) => isInside(wanted, root))) throw outside(path)
  const real = await realOr(wanted, undefined)
  const found = real === undefined ? undefined : await stat(real).catch(() => undefined)
  if (real === undefined || !found?.isDirectory()) {
    throw new RequestProblem(404, 'folder-not-found', `The folder ${JSON.stringify(path)} does not exist.`)
  }
  // A symbolic link inside of a root may lead out of it.
  if (!realRoots.some((root) => isInside(real, root))) throw outside(path)
  return real
}

async function realOr<T>(path: string, otherwise: T): Promise<string | T> {
  return realpath(path).catch(() => otherwise)
}

function outside(path: string): RequestProblem {
  return new RequestProblem(
    403,
    'outside-roots',
    `${JSON.stringify(path)} is outside of the folders that this server may use.`,
  )
}
