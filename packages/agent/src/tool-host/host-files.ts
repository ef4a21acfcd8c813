import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Redactor } from '@tapetree/redact'
import { SnapshotsOff } from '../workspace/shadow-git.ts'
import { SnapshotStore, type TreeFile } from '../workspace/snapshot-store.ts'

export interface HostFilesOptions {
  /** Of the workspace. */
  folder: string
  /** Keeps its snapshots on this host. */
  storesFolder: string
  redactor: Redactor
  /** Whether a session may read or write this file here. */
  mayUse: (access: 'read' | 'write', path: string) => boolean
}

/** The files of a workspace at one moment. */
export interface TakenFiles {
  tree: string
  /** The tree that the other side has already; the pack has only what is not in it. */
  base?: string
  /** Empty if nothing has changed. */
  pack: Buffer
  leftOut: { path: string; reason: string }[]
  leftOutCount: number
  head?: string
  branch?: string
}

/** What a session may not do with the files. The message is a sentence. */
export class FilesRefused extends Error {
  override readonly name = 'FilesRefused'
}

/** A larger pack is not sent. Two of them fit into memory. */
export const maxPackBytes = 64 * 1024 * 1024
/** Of all packs with the files of a workspace. More are not recreated. */
export const maxAllBytes = 4 * maxPackBytes
/** More contents than this are not looked through for secrets at once. */
const maxScannedBytes = 256 * 1024 * 1024
const maxListed = 50

/** Takes the files of one workspace for a session, and recreates those of another host. */
export class HostFiles {
  readonly #options: HostFilesOptions
  #store: Promise<SnapshotStore> | undefined
  /** File versions without a secret. */
  readonly #clean = new Set<string>()

  constructor(options: HostFilesOptions) {
    this.#options = options
  }

  /** Files with secrets, and files that this host lets nobody read, are left out. Throws `FilesRefused`. */
  async take(known: string | undefined): Promise<TakenFiles> {
    const store = await this.#open()
    const taken = await store.take()
    const whole = await store.treeWithout(taken.tree, [])
    const kept = await this.#secretsOf(store, await store.filesOf(whole))
    const tree = kept.length === 0 ? whole : await store.treeWithout(taken.tree, kept)
    const base = known !== undefined && (await store.isWhole(known)) ? known : undefined
    const isSame = base === tree
    const pack = isSame ? Buffer.alloc(0) : await store.export(tree, { base, maxBytes: maxPackBytes })
    if (!pack) throw new FilesRefused(`The files are more than ${maxPackBytes / 1024 ** 2} MiB, so they are not kept.`)
    await store.keepIfNeeded([taken.tree, tree, ...(base === undefined ? [] : [base])])
    const leftOut = [...taken.leftOut, ...kept.map((path) => ({ path, reason: 'secret' }))]
    return {
      tree,
      ...(base !== undefined && { base }),
      pack,
      leftOut: leftOut.slice(0, maxListed),
      leftOutCount: taken.leftOutCount + kept.length,
      ...(taken.head !== undefined && { head: taken.head }),
      ...(taken.branch !== undefined && { branch: taken.branch }),
    }
  }

  /** Writes the files of a tree into the folder, which must be empty. Throws `FilesRefused`; then nothing was written. */
  async recreate(tree: string, packs: readonly Buffer[]): Promise<{ files: number; leftOut: string[] }> {
    const { folder, mayUse } = this.#options
    const found = await readdir(folder)
    if (found.length > 0) {
      throw new FilesRefused(`The folder ${folder} is not empty, so the files were not recreated there.`)
    }
    const store = await this.#open()
    if (store.prefix !== '') {
      throw new FilesRefused(`The folder ${folder} is part of a git repository, so the files were not recreated there.`)
    }
    try {
      for (const pack of packs) await store.import(pack)
    } catch (cause) {
      throw new FilesRefused('The files that were sent could not be read, so they were not recreated.', { cause })
    }
    if (!(await store.isWhole(tree))) {
      throw new FilesRefused('The files that were sent are not complete, so they were not recreated.')
    }
    const files = await store.filesOf(tree)
    const leftOut = files.map(({ path }) => path).filter((path) => !mayUse('write', join(folder, path)))
    await store.checkOut(leftOut.length === 0 ? tree : await store.treeWithout(tree, leftOut))
    return { files: files.length - leftOut.length, leftOut: leftOut.slice(0, maxListed) }
  }

  /** The paths of files that must not leave this host. */
  async #secretsOf(store: SnapshotStore, files: readonly TreeFile[]): Promise<string[]> {
    const { folder, mayUse, redactor } = this.#options
    const isForbidden = ({ path }: TreeFile): boolean => !mayUse('read', join(folder, path))
    const forbidden = files.filter(isForbidden)
    const unknown = files.filter((file) => !this.#clean.has(file.id) && !forbidden.includes(file))
    const ids = [...new Set(unknown.map(({ id }) => id))]
    const bytes = unknown.reduce((sum, { size }) => sum + size, 0)
    if (bytes > maxScannedBytes) throw new FilesRefused('The workspace has too many files to be kept.')
    const contents = ids.length === 0 ? [] : await store.contentsOf(ids)
    for (const [index, content] of contents.entries()) {
      if (redactor.bytes(content).length === content.length && Buffer.from(redactor.bytes(content)).equals(content)) {
        this.#clean.add(ids[index] as string)
      }
    }
    return [...forbidden, ...unknown.filter(({ id }) => !this.#clean.has(id))].map(({ path }) => path)
  }

  #open(): Promise<SnapshotStore> {
    const { folder, storesFolder } = this.#options
    this.#store ??= SnapshotStore.open({ folder, storesFolder }).catch((error: unknown) => {
      this.#store = undefined
      throw error instanceof SnapshotsOff ? new FilesRefused(error.message) : error
    })
    return this.#store
  }
}
