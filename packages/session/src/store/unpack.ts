import { ByteSource } from '../util/byte-source.ts'
import { isObject, parseJson } from '../util/json.ts'
import { copyOfLine, nearestReadable } from './copy-session.ts'
import { SessionError } from '../errors.ts'
import { newId } from '../line/ids.ts'
import { isSha256 } from '../line/large-values.ts'
import { isEntry, maxReadLineBytes, type DiskLine } from '../line/line.ts'
import type { BlobReference } from '../line/message.ts'
import { packVersion } from './pack.ts'
import { Reading } from '../log/replay.ts'
import { SessionState } from '../state/session-state.ts'

/** The new session that receives the data of a pack. */
export interface UnpackTarget {
  putBlob(bytes: Uint8Array): Promise<BlobReference>
  append(line: DiskLine): Promise<void>
}

/** Reads the start of a pack; throws `invalid-pack` before anything is written. */
export async function openPack(bytes: AsyncIterable<Uint8Array>): Promise<{ source: ByteSource; sessionId: string }> {
  const source = new ByteSource(bytes)
  const start = await readPackLine(source)
  if (start['type'] !== 'tapetree_pack') throw invalid('it does not begin like one')
  if (start['version'] !== packVersion) {
    throw invalid(`its version is ${String(start['version'])}, and this build reads ${packVersion}`)
  }
  return { source, sessionId: String(start['session']) }
}

/**
 * Reads the rest as data. Checks every blob against its hash, parses every line, assigns new ids to entries,
 * and omits what belongs to running (grants, queue, open calls). Returns the leaf of the new session.
 */
export async function unpackInto(source: ByteSource, target: UnpackTarget): Promise<string | null> {
  for (;;) {
    const part = await readPackLine(source)
    if (part['type'] === 'log') break
    await unpackBlob(source, part, target)
  }
  return unpackLog(source, target)
}

async function unpackBlob(source: ByteSource, part: Record<string, unknown>, target: UnpackTarget): Promise<void> {
  const { sha256, size } = part
  if (part['type'] !== 'blob' || !isSha256(sha256)) throw invalid('a part of it is not a blob')
  if (!Number.isSafeInteger(size) || Number(size) < 0 || Number(size) > maxBlobBytes)
    throw invalid('a blob is too large')
  const bytes = await source.bytes(Number(size))
  if (!bytes) throw invalid('it ends inside a blob')
  const stored = await target.putBlob(bytes)
  if (stored.sha256 !== sha256) throw invalid(`blob ${sha256} has other content`)
}

async function unpackLog(source: ByteSource, target: UnpackTarget): Promise<string | null> {
  const state = new SessionState({ isWhole: true })
  const accepted: DiskLine[] = []
  const reading = new Reading(state, ({ line }) => accepted.push(line))
  const ids = new NewIds()
  let lines = 0
  let at = 0
  for (;;) {
    const bytes = await source.line(maxReadLineBytes)
    if (!bytes) throw invalid('it ends before its last line, or a line is too long')
    const end = endOf(bytes)
    if (end) {
      if (end['lines'] !== lines || !(await source.isAtEnd())) throw invalid('its number of lines is not what it says')
      break
    }
    lines++
    const next = at + bytes.length + 1
    reading.take({ at, size: bytes.length, next, bytes })
    at = next
    for (const line of accepted.splice(0)) {
      const node = isEntry(line) ? state.tree.get(line.id) : undefined
      if (node) await target.append(ids.renamed(copyOfLine(line, node)))
    }
  }
  const leaf = state.leaf && nearestReadable(state.leaf)
  return leaf && ids.of(leaf)
}

/** Assigns new ids, so that two imports of one pack are two independent sessions. */
class NewIds {
  readonly #ids = new Map<string, string>()

  of(id: string): string {
    const known = this.#ids.get(id)
    if (known !== undefined) return known
    const fresh = newId()
    this.#ids.set(id, fresh)
    return fresh
  }

  renamed(line: DiskLine): DiskLine {
    const result: DiskLine = { ...line, id: this.of(line.id) }
    if (typeof line.parent_id === 'string') result.parent_id = this.of(line.parent_id)
    const payload = result[line.type]
    const holder = isObject(payload) ? { ...payload } : result
    for (const name of ['target_id', 'first_kept_entry_id', 'from_id']) {
      const id = holder[name]
      if (typeof id === 'string') holder[name] = this.of(id)
    }
    if (isObject(payload)) result[line.type] = holder
    return result
  }
}

async function readPackLine(source: ByteSource): Promise<Record<string, unknown>> {
  const line = await source.line(maxPackLineBytes)
  const parsed = line && parseObject(line)
  if (!parsed) throw invalid('a line of it cannot be read')
  return parsed
}

/** Parses the closing line; unlike log lines it has no id. */
function endOf(bytes: Uint8Array): Record<string, unknown> | undefined {
  if (bytes.length > maxPackLineBytes) return undefined
  const parsed = parseObject(bytes)
  return parsed?.['type'] === 'end' && parsed['id'] === undefined ? parsed : undefined
}

function parseObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  const parsed = parseJson(decoder.decode(bytes))
  return isObject(parsed) ? parsed : undefined
}

const decoder = new TextDecoder()
const maxPackLineBytes = 1024
const maxBlobBytes = 256 * 1024 * 1024

function invalid(reason: string): SessionError {
  return new SessionError('invalid-pack', `This is not a usable pack: ${reason}.`)
}
