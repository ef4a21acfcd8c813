import type { Session } from '@tapetree/session'
import { sha256Of } from '../util/request-hash.ts'
import { maxAllBytes, maxPackBytes } from './host-files.ts'
import { hostTexts } from './hosted-call.ts'
import { conversation, HostUnavailable } from './conversation.ts'
import { maxPacks } from './messages.ts'
import type { RemoteWorkspace } from './remote-workspace.ts'

type KeptRecord = Omit<NonNullable<Session['workspaceFiles']>, 'timestamp'>

/** The files of a workspace as its host has sent them. */
export interface RemoteFiles extends Omit<KeptRecord, 'hostId' | 'name' | 'packs'> {
  /** The tree that the pack builds on. */
  base?: string
  /** Empty if nothing has changed since `base`. */
  pack: Buffer
}

/** What became of files on another host. */
export interface RecreatedFiles {
  /** How many were written. */
  files: number
  /** The first ones that the host does not allow. */
  leftOut: string[]
}

/** The host reads all files for the first answer, and writes all of them for the last one. */
const patienceMs = 10 * 60_000

/** The files as they are now, without those that the service has. Rejects with `HostUnavailable`. */
export async function takeFiles(
  { channel, reference: { name: workspace } }: RemoteWorkspace,
  base?: string,
): Promise<RemoteFiles> {
  const ask = conversation(channel, { patienceMs })
  const files = await ask('files', (id) => ({ type: 'files', id, workspace, ...(base !== undefined && { base }) }))
  const { type: _, id: __, size, leftOut, leftOutCount, ...taken } = files
  if (size > maxPackBytes) throw new HostUnavailable('The tool host sent too many files.')
  const parts: Buffer[] = []
  for (let off = 0; off < size;) {
    const from = off
    const { data } = await ask('data', (id) => ({ type: 'part', id, off: from }))
    const part = Buffer.from(data, 'base64')
    if (part.length === 0 || off + part.length > size) throw new HostUnavailable('The tool host sent a wrong part.')
    parts.push(part)
    off += part.length
  }
  return { ...taken, ...(leftOutCount > 0 && { leftOut, leftOutCount }), pack: Buffer.concat(parts) }
}

/** Writes files into the folder, which must be empty. Rejects with `HostUnavailable`. */
export async function sendFiles(
  { channel, reference: { name: workspace } }: RemoteWorkspace,
  { tree, packs }: { tree: string; packs: readonly Buffer[] },
): Promise<RecreatedFiles> {
  const ask = conversation(channel, { patienceMs })
  const bytes = Buffer.concat(packs)
  const sizes = packs.map(({ length }) => length)
  let { off } = await ask('part', (id) => ({ type: 'recreate', id, workspace, tree, packs: sizes }))
  while (off + partBytes < bytes.length) {
    const from = off
    const data = bytes.subarray(from, from + partBytes).toString('base64')
    off = (await ask('part', (id) => ({ type: 'data', id, off: from, data }))).off
    if (off !== from + partBytes) throw new HostUnavailable('The tool host asked for a wrong part.')
  }
  const from = off
  const data = bytes.subarray(from).toString('base64')
  const { files, leftOut } = await ask('recreated', (id) => ({ type: 'data', id, off: from, data }))
  return { files, leftOut }
}

const partBytes = 4 * 1024 * 1024

/** Keeps the files of a session's workspace with the session: after each run, what has changed. */
export class KeptFiles {
  readonly #session: Session
  readonly #remote: RemoteWorkspace
  readonly #stop: () => void
  #last: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(session: Session, remote: RemoteWorkspace) {
    this.#session = session
    this.#remote = remote
    this.#stop = session.subscribe(({ line }) => {
      // If it fails, the files after the next run have these changes, too.
      if (line.type === 'run_end') void this.keep().catch(() => undefined)
    })
  }

  /** Resolves when the files are kept as they are now. Rejects with `HostUnavailable`. */
  keep(): Promise<void> {
    const kept = this.#last.then(() => this.#keep())
    this.#last = kept.catch(() => undefined)
    return kept
  }

  /** What is under way is given up: the next run keeps the files again. */
  close(): void {
    this.#isClosed = true
    this.#stop()
  }

  async #keep(): Promise<void> {
    if (this.#isClosed || !this.#remote.sharesFiles) return
    const { hostId, name } = this.#remote.reference
    const before = this.#session.workspaceFiles
    // Files that were recreated elsewhere are those of before.
    const known = before && canGrow(before) ? before : undefined
    const { pack, base, ...taken } = await takeFiles(this.#remote, known?.tree)
    if (this.#isClosed || (pack.length === 0 && before?.hostId === hostId && before.name === name)) return
    const earlier = base === undefined ? [] : (known?.packs ?? [])
    const added = pack.length === 0 ? [] : [await this.#put(pack)]
    const workspaceFiles: KeptRecord = { hostId, name, ...taken, packs: [...earlier, ...added] }
    await this.#session.append({ type: 'workspace_files', workspaceFiles })
  }

  async #put(pack: Buffer): Promise<KeptRecord['packs'][number]> {
    const blob = await this.#session.putBlob(pack)
    if (blob.sha256 !== sha256Of(pack)) throw new HostUnavailable('The files could not be stored as they are.')
    return blob
  }
}

/** Whether a host recreates the files also if another pack is added. */
function canGrow({ packs }: Pick<KeptRecord, 'packs'>): boolean {
  return packs.length < maxPacks && bytesOf(packs) + maxPackBytes <= maxAllBytes
}

function bytesOf(packs: KeptRecord['packs']): number {
  return packs.reduce((sum, { size }) => sum + size, 0)
}

/** Recreates the files that a session has kept. Rejects with `HostUnavailable` if it cannot be done. */
export async function recreateFiles(session: Session, remote: RemoteWorkspace): Promise<RecreatedFiles> {
  const kept = session.workspaceFiles
  if (!kept) throw new HostUnavailable('No files of a workspace were kept with this session.')
  if (bytesOf(kept.packs) > maxAllBytes) throw new HostUnavailable(hostTexts.tooManyFiles)
  const packs: Buffer[] = []
  for (const { sha256 } of kept.packs) {
    const bytes = await session.getBlob(sha256)
    if (!bytes) throw new HostUnavailable('Some of the files that were kept with this session are missing.')
    packs.push(Buffer.from(bytes))
  }
  return sendFiles(remote, { tree: kept.tree, packs })
}

/** What the model has to know about a folder whose files were recreated. */
export function recreatedNotice(session: Session, { files, leftOut }: RecreatedFiles, remote: RemoteWorkspace): string {
  const { folder, hostName } = remote.reference
  const { timestamp = '', head, branch, leftOut: before = [], leftOutCount = 0 } = session.workspaceFiles ?? {}
  const missing = [
    ...before.map(({ path, reason }) => `${path} (${reason})`),
    ...leftOut.map((path) => `${path} (not allowed there)`),
  ]
  const more = leftOutCount - before.length
  return [
    `The folder of this session is now ${folder} on ${hostName}. Its ${files} files were recreated as they were at ${timestamp}; later changes are lost.`,
    'Files that git ignores are missing, such as dependencies and build results, and so is the git repository itself.',
    ...(head === undefined
      ? []
      : [`At that time, commit ${head}${branch === undefined ? '' : ` of branch ${branch}`} was checked out.`]),
    ...(missing.length === 0
      ? []
      : [`These are missing, too: ${missing.join(', ')}${more > 0 ? `, and ${more} more` : ''}.`]),
  ].join(' ')
}
