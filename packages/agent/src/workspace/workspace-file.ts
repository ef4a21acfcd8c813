import { realpath } from 'node:fs/promises'
import { isAbsolute, resolve } from 'node:path'
import { isInside } from '../util/is-inside.ts'
import { judgeCall } from '../permissions/judge-call.ts'
import type { Policy } from '../permissions/policy.ts'
import { openRegularFile } from '../tools/files/confirm-path.ts'
import { fileKindOf, headBytes, type Encoding, type FileKind } from '../tools/files/file-kind.ts'
import { hasCode, ToolProblem } from '../tools/tool-problem.ts'

/** Why a file is not shown. The message is a sentence. */
export class WorkspaceProblem extends Error {
  override readonly name = 'WorkspaceProblem'
  readonly code: 'outside-folder' | 'file-not-found' | 'not-a-file' | 'secret-file'

  constructor(code: WorkspaceProblem['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }
}

export interface FilePart {
  /** In bytes. */
  offset: number
  maxBytes: number
}

export interface WorkspaceFile {
  kind: FileKind
  /** Of the whole file, in bytes. */
  size: number
  modifiedMs: number
  /** Differs whenever the file was changed or replaced. */
  version: string
  /** The requested bytes. A text ends with a complete character. */
  bytes: Buffer
  /** Where the next part begins. Absent at the end of the file. */
  nextOffset?: number
}

/** Reads a part of a file. `path` is relative to the folder; the rules are those of the tool `read`. */
export async function readWorkspaceFile(path: string, part: FilePart, policy: Policy): Promise<WorkspaceFile> {
  const real = await readablePath(path, policy)
  await using file = await openRegularFile(real).catch((cause: unknown) => {
    throw problemOf(cause, path)
  })
  const stats = await file.stat({ bigint: true })
  const size = Number(stats.size)
  const read = async (offset: number, length: number): Promise<Buffer> => {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset)
    return buffer.subarray(0, bytesRead)
  }
  const kind = fileKindOf(await read(0, Math.min(size, headBytes)))
  const wanted = await read(part.offset, Math.max(0, Math.min(part.maxBytes, size - part.offset)))
  const isEnd = part.offset + wanted.length >= size
  const bytes = kind.type === 'text' && !isEnd ? wholeCharacters(wanted, kind.encoding) : wanted
  return {
    kind,
    size,
    modifiedMs: Number(stats.mtimeMs),
    version: [stats.dev, stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join('-'),
    bytes,
    ...(!isEnd && { nextOffset: part.offset + bytes.length }),
  }
}

/**
 * The real path of a file or folder below the policy's folder. Paths that lead out are rejected without looking at what
 * is there.
 */
async function readablePath(path: string, policy: Policy): Promise<string> {
  const root = await realpath(policy.cwd)
  const written = resolve(root, path)
  if (isAbsolute(path) || path.includes('\0') || !isInside(written, root)) throw outside(path)
  const real = await realpath(written).catch((cause: unknown) => {
    throw problemOf(cause, path)
  })
  if (!isInside(real, root)) throw outside(path)
  requireReadable(written, { shown: path, policy })
  return real
}

/** Throws for a path that the tool `read` would not read without a request. It need not exist. */
export function requireReadable(absolute: string, { shown, policy }: { shown: string; policy: Policy }): void {
  const access = [{ type: 'read' as const, path: absolute }]
  const judgement = judgeCall({ tool: 'read', readOnly: true, access }, policy)
  if (judgement.effect === 'allow') return
  throw new WorkspaceProblem('secret-file', `${JSON.stringify(shown)} is not shown. ${judgement.reason}`)
}

function outside(path: string): WorkspaceProblem {
  return new WorkspaceProblem('outside-folder', `${JSON.stringify(path)} is outside of the session's folder.`)
}

function problemOf(cause: unknown, path: string): unknown {
  const shown = JSON.stringify(path)
  if (hasCode(cause, 'ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG'))
    return new WorkspaceProblem('file-not-found', `There is no file ${shown} in the session's folder.`, { cause })
  if (cause instanceof ToolProblem || hasCode(cause, 'EACCES', 'EPERM'))
    return new WorkspaceProblem('not-a-file', `${shown} is not a file that can be read.`, { cause })
  return cause
}

/** Without the start of a character whose rest is in the next part. Bytes that are no text stay. */
function wholeCharacters(bytes: Buffer, encoding: Encoding): Buffer {
  if (encoding !== 'utf-8') return wholePairs(bytes, encoding)
  for (let back = 1; back <= Math.min(3, bytes.length - 1); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes
  }
  return bytes
}

function wholePairs(bytes: Buffer, encoding: 'utf-16le' | 'utf-16be'): Buffer {
  const even = bytes.subarray(0, bytes.length - (bytes.length % 2))
  if (even.length < 4) return even.length === 0 ? bytes : even
  const last = encoding === 'utf-16le' ? even.readUInt16LE(even.length - 2) : even.readUInt16BE(even.length - 2)
  return last >= 0xd800 && last < 0xdc00 ? even.subarray(0, -2) : even
}
