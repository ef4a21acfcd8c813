import { isInside } from '@tapetree/agent/util/is-inside'
import type { fileListSchema, folderListSchema } from '@tapetree/client'
import type { Dirent } from 'node:fs'
import { opendir, stat } from 'node:fs/promises'
import { basename, dirname, join, posix, resolve } from 'node:path'
import type { z } from 'zod'
import { folderInside, realOr } from './files-inside.ts'

type FolderList = z.infer<typeof folderListSchema>
type FileList = z.infer<typeof fileListSchema>

/** Of a folder with more in it than this, not all is seen. */
const maxSeen = 5000
const maxFolders = 500

/** What is inside a folder that can be chosen. What begins with a dot is not offered. */
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

/** Files and folders whose paths begin with what was typed. A path that leads out of the folder has none. */
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

/** Undefined for what leads out of the root, and for what is neither. */
async function kindOf(folder: string, entry: Dirent, root: string): Promise<'file' | 'folder' | undefined> {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  if (!entry.isSymbolicLink()) return undefined
  const real = await realOr(join(folder, entry.name), undefined)
  if (real === undefined || !isInside(real, root)) return undefined
  const found = await stat(real).catch(() => undefined)
  return found?.isDirectory() ? 'folder' : found?.isFile() ? 'file' : undefined
}
