import { camelCase, isObject, snakeCase } from '../util/json.ts'
import type { Line, DiskLine } from './line.ts'

/**
 * Converts names: snake_case on disk, camelCase in the API. Only the members listed here are renamed; tool
 * input, custom data, provider metadata and members of a newer version pass through unchanged.
 */
export function fromDisk(stored: DiskLine, seq: number): Line {
  return decode(stored, seq, rename)
}

/** Like `fromDisk`, for a line that nothing else holds: what needs no renaming is not copied. */
export function fromParsed(stored: DiskLine, seq: number): Line {
  return decode(stored, seq, renameChanged)
}

function decode(stored: DiskLine, seq: number, renamePart: Rename): Line {
  const disk = withKnownName(stored)
  const { type } = disk
  const payload = payloads.get(type)
  if (!payload) return unknownLine(disk, seq)
  const line = decodeMembers(disk, payload.line, renamePart)
  line['seq'] = seq
  if (type === 'session') return line as unknown as Line
  const isNested = isObject(disk[payload.disk])
  if (!isNested) line[payload.api] = rename(flatPayload(disk, payload, line), payload.shape, 'api')
  fixRole(line, payload.api)
  return line as unknown as Line
}

/** The members of a line, without `crc`. Deleting it afterwards would make every later access slow. */
function decodeMembers(disk: DiskLine, { api: table }: Shape, renamePart: Rename): Plain {
  const line: Plain = {}
  for (const name of Object.keys(disk)) {
    if (name === 'crc') continue
    const value = disk[name]
    const field = table.get(name)
    if (!field) define(line, name, value)
    else line[field.to] = field.shape ? renameInside(value, field.shape, { direction: 'api', renamePart }) : value
  }
  return line
}

/** Members that the writer adds to a draft. */
export interface LineIdentity {
  id: string
  timestamp: string
  /** Undefined for a record, which has no parent member at all. */
  parentId?: string | null | undefined
  request?: unknown
  cause?: unknown
}

/** The members of a line in their order on disk, without `seq` and `crc`, which the writer adds. */
export function toDisk(draft: { type: string; [member: string]: unknown }, identity: LineIdentity): DiskLine {
  const disk: DiskLine = { type: draft.type, id: identity.id }
  if (identity.parentId !== undefined) disk.parent_id = identity.parentId
  disk.timestamp = identity.timestamp
  const payload = payloads.get(draft.type)
  for (const name in draft) {
    const value = draft[name]
    if (value === undefined || identifying.has(name)) continue
    if (name === payload?.api) disk[payload.disk] = rename(value as Plain, payload.shape, 'disk')
    else addMember(disk, name, value)
  }
  if (identity.request !== undefined) addMember(disk, 'request', identity.request)
  if (identity.cause !== undefined) addMember(disk, 'cause', identity.cause)
  return disk
}

function addMember(disk: DiskLine, name: string, value: unknown): void {
  const field = baseShape.disk.get(name)
  if (!field) define(disk, name, value)
  else
    disk[field.to] = field.shape ? renameInside(value, field.shape, { direction: 'disk', renamePart: rename }) : value
}

const identifying = new Set(['seq', 'type', 'id', 'parentId', 'timestamp', 'crc'])

type Plain = Record<string, unknown>
type Direction = 'api' | 'disk'

interface Field {
  to: string
  shape: Shape | undefined
}

/** Renaming tables for both directions, built once from the list of API names. */
interface Shape {
  api: Map<string, Field>
  disk: Map<string, Field>
}

/** Names are camelCase members. If the value is a shape, the member (or each of its items) is renamed by that shape. */
function shape(members: Record<string, Shape | true>): Shape {
  const tables: Shape = { api: new Map(), disk: new Map() }
  for (const [api, inner] of Object.entries(members)) {
    const disk = snakeCase(api)
    const innerShape = inner === true ? undefined : inner
    tables.api.set(disk, { to: api, shape: innerShape })
    tables.disk.set(api, { to: disk, shape: innerShape })
  }
  return tables
}

function rename(source: Plain, tables: Shape, direction: Direction): Plain {
  const table = tables[direction]
  const result: Plain = {}
  for (const name of Object.keys(source)) {
    const value = source[name]
    const field = table.get(name)
    if (!field) define(result, name, value)
    else result[field.to] = field.shape ? renameInside(value, field.shape, { direction, renamePart: rename }) : value
  }
  return result
}

/** Returns the source itself if none of its names changes. */
function renameChanged(source: Plain, tables: Shape, direction: Direction): Plain {
  const table = tables[direction]
  for (const name of Object.keys(source)) {
    const field = table.get(name)
    if (field === undefined) continue
    const { to, shape: inner } = field
    const value = source[name]
    const isSame =
      to === name &&
      (inner === undefined || renameInside(value, inner, { direction, renamePart: renameChanged }) === value)
    if (!isSame) return rename(source, tables, direction)
  }
  return source
}

type Rename = (source: Plain, tables: Shape, direction: Direction) => Plain

interface InsideOptions {
  direction: Direction
  renamePart: Rename
}

function renameInside(value: unknown, inner: Shape, { direction, renamePart }: InsideOptions): unknown {
  if (!Array.isArray(value)) return isObject(value) ? renamePart(value, inner, direction) : value
  if (
    renamePart === renameChanged &&
    value.every((item) => !isObject(item) || renameChanged(item, inner, direction) === item)
  ) {
    return value
  }
  return value.map((item: unknown) => (isObject(item) ? renamePart(item, inner, direction) : item))
}

/** `__proto__` in a parsed line is a plain member; assigning it would change the prototype instead. */
function define(target: Plain, name: string, value: unknown): void {
  if (name !== '__proto__') target[name] = value
  else Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true })
}

const usageShape = shape({
  inputTokens: true,
  outputTokens: true,
  cacheReadTokens: true,
  cacheWriteTokens: true,
  reasoningTokens: true,
  totalTokens: true,
  cost: true,
})

const blobShape = shape({ sha256: true, size: true })

const contentShape = shape({
  type: true,
  text: shape({ content: true, providerMetadata: true }),
  image: shape({ source: shape({ type: true, mediaType: true, data: true, sha256: true, size: true }) }),
  toolUse: shape({ id: true, name: true, input: true, partialInput: true, providerMetadata: true }),
  reasoning: shape({ text: true, signature: true, providerMetadata: true }),
})
// A result may contain content, so its shape is recursive.
contentShape.api.set('tool_result', { to: 'toolResult', shape: toolResultShape('api') })
contentShape.disk.set('toolResult', { to: 'tool_result', shape: toolResultShape('disk') })

function toolResultShape(direction: Direction): Shape {
  const result = shape({ toolUseId: true, isError: true })
  result[direction].set('content', { to: 'content', shape: contentShape })
  return result
}

const messageShape = shape({
  role: true,
  content: contentShape,
  model: true,
  provider: true,
  api: true,
  usage: usageShape,
  stopReason: true,
  error: true,
  thinkingLevel: true,
  runId: true,
  submissionId: true,
  durationMs: true,
  skipped: true,
  bashExecution: shape({
    command: true,
    output: true,
    exitCode: true,
    cancelled: true,
    truncated: true,
    outputBlob: blobShape,
    excludeFromContext: true,
  }),
})

const baseShape = shape({
  parentId: true,
  parentSession: true,
  parentEntry: true,
  cause: shape({ cmd: true, client: true, token: true, digest: true }),
  request: shape({ sha256: true, adapter: true, adapterVersion: true, params: true, leafId: true }),
})

interface Payload {
  api: string
  disk: string
  shape: Shape
  /** The whole line, with the payload under its name. */
  line: Shape
}

const payloadShapes: Record<Exclude<Line['type'], 'unknown' | 'unknown_record'>, Shape> = {
  session: shape({}),
  message: messageShape,
  system: shape({
    prompt: true,
    tools: shape({ name: true, description: true, inputSchema: true }),
    sha256: true,
  }),
  model_change: shape({ provider: true, modelId: true }),
  thinking_level: shape({ thinkingLevel: true }),
  compaction: shape({ summary: true, firstKeptEntryId: true, tokensBefore: true }),
  branch_summary: shape({ summary: true, fromId: true }),
  custom: shape({ customType: true, data: true }),
  label: shape({ targetId: true, label: true }),
  session_info: shape({ name: true }),
  gap: shape({ reason: true }),
  writer: shape({ term: true, host: true, process: true, format: true }),
  leaf: shape({ targetId: true, rewind: true, restoreId: true }),
  submission: shape({
    action: true,
    id: true,
    delivery: true,
    message: true,
    imageIds: true,
    queuedAt: true,
    clientId: true,
    beforeId: true,
    reason: true,
    held: true,
  }),
  run_start: shape({
    runId: true,
    leafId: true,
    submissionId: true,
    owner: true,
    resumes: true,
    fruitless: true,
    spent: true,
  }),
  run_end: shape({ runId: true, outcome: true, reason: true, durationMs: true }),
  attempt: shape({ runId: true, item: true, error: true, content: contentShape }),
  tool_start: shape({
    runId: true,
    callId: true,
    name: true,
    entryId: true,
    host: true,
    bootId: true,
    spool: true,
    deadline: true,
    input: true,
    childSession: true,
    sandbox: shape({ backend: true, writable: true, hosts: true, home: true }),
  }),
  bash_start: shape({
    messageId: true,
    command: true,
    excludeFromContext: true,
    host: true,
    bootId: true,
    spool: true,
  }),
  blocked: shape({ callId: true, kind: true, what: true, count: true, kept: true, outcome: true }),
  permission_request: shape({
    requestId: true,
    runId: true,
    callId: true,
    tool: true,
    title: true,
    input: true,
    options: shape({ optionId: true, label: true, kind: true }),
  }),
  permission_result: shape({
    requestId: true,
    outcome: true,
    optionId: true,
    text: true,
    clientId: true,
    grant: true,
  }),
  permission_mode: shape({ mode: true, reason: true }),
  plan: shape({ items: shape({ text: true, status: true }) }),
  file_read: shape({ path: true, size: true, runId: true, callId: true }),
  file_write: shape({
    path: true,
    size: true,
    sha256Before: true,
    sha256After: true,
    runId: true,
    callId: true,
  }),
  snapshot: shape({
    when: true,
    tree: true,
    previous: true,
    by: true,
    runId: true,
    callId: true,
    entryId: true,
    added: true,
    changed: true,
    removed: true,
    leftOut: shape({ path: true, reason: true }),
    leftOutCount: true,
    head: true,
    branch: true,
    durationMs: true,
  }),
  restore: shape({
    restoreId: true,
    phase: true,
    targetId: true,
    undoes: true,
    leafId: true,
    from: true,
    to: true,
    changed: true,
    kept: true,
    conflicts: true,
    skipped: true,
  }),
  check: shape({ command: true, exitCode: true, durationMs: true, tree: true, treeAfter: true, entryId: true }),
  working_copy: shape({
    folder: true,
    root: true,
    copyOf: true,
    tree: true,
    variants: shape({ id: true, number: true, count: true }),
    outcome: true,
    result: true,
  }),
  workspace_files: shape({
    hostId: true,
    name: true,
    tree: true,
    packs: true,
    leftOut: true,
    leftOutCount: true,
    head: true,
    branch: true,
  }),
  workspace: shape({ name: true, hostId: true, hostName: true, folder: true, platform: true }),
  usage: shape({ purpose: true, provider: true, model: true, tokens: usageShape }),
  error: shape({ message: true, kind: true, runId: true }),
  damage: shape({ throughSeq: true, lostLines: true, places: shape({ at: true, size: true, reason: true }) }),
  session_end: shape({ reason: true }),
}

const payloads = new Map<string, Payload>(
  Object.entries(payloadShapes).map(([type, payload]) => [
    type,
    { api: camelCase(type), disk: type, shape: payload, line: lineShape(type, payload) },
  ]),
)

function lineShape(type: string, payload: Shape): Shape {
  return { api: new Map(baseShape.api).set(type, { to: camelCase(type), shape: payload }), disk: baseShape.disk }
}

/** Converts a payload without its line, for example one kept by the fold. */
export function payloadFromDisk(type: string, payload: Plain): Plain {
  const known = payloads.get(type)
  return known ? rename(payload, known.shape, 'api') : payload
}

/** Older files carry the payload's members beside `type` and `id`. */
export function payloadOf(stored: DiskLine): Plain {
  const disk = withKnownName(stored)
  const nested = disk[disk.type]
  return isObject(nested) ? nested : disk
}

/** Older files write `thinking_level_change`. */
function withKnownName(disk: DiskLine): DiskLine {
  if (disk.type !== 'thinking_level_change') return disk
  const { thinking_level_change: payload, ...rest } = disk
  return { ...rest, type: 'thinking_level', id: disk.id, ...(isObject(payload) && { thinking_level: payload }) }
}

/** Returns `otherwise` unless the value is a string. */
export function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' ? value : otherwise
}

/** Collects payload members that lie directly in the line. */
function flatPayload(disk: DiskLine, payload: Payload, line: Plain): Plain {
  const source: Plain = {}
  for (const name of payload.shape.api.keys()) {
    if (disk[name] === undefined || identifying.has(name)) continue
    source[name] = disk[name]
    delete line[name]
  }
  return source
}

/** Older files call the role of a result `toolResult`. */
function fixRole(line: Plain, name: string): void {
  const payload = line[name] as Plain
  if (payload['role'] === 'toolResult') line[name] = { ...payload, role: 'tool' }
}

function unknownLine(disk: DiskLine, seq: number): Line {
  const base = { id: disk.id, timestamp: disk.timestamp ?? '', seq }
  const unknown = { type: disk.type, line: disk }
  if (disk.parent_id === undefined) return { ...base, type: 'unknown_record', unknownRecord: unknown }
  return { ...base, type: 'unknown', parentId: disk.parent_id, unknown }
}
