import { createHash } from 'node:crypto'
import { z } from 'zod'

/** The version of these messages. A host and a service that differ do not work together. */
export const toolHostProtocol = 1

/** A message is at most this long: an image, or a file before and after a change, fits. */
export const maxHostMessageBytes = 16 * 1024 * 1024

/** An introduction is at most this long. */
export const maxHelloBytes = 256 * 1024

/** The files of a workspace are in at most so many packs. */
export const maxPacks = 50

export const maxNameLength = 200

const name = z.string().min(1).max(maxNameLength)
const id = z.string().regex(/^[\w-]{8,64}$/)
const input = z.record(z.string(), z.unknown())

const access = z.discriminatedUnion('type', [
  z.object({ type: z.literal('read'), path: z.string(), isRecursive: z.boolean().exactOptional() }),
  z.object({ type: z.literal('write'), path: z.string() }),
  z.object({
    type: z.literal('command'),
    command: z.string(),
    cwd: z.string(),
    canSandbox: z.boolean().exactOptional(),
    outside: z.string().exactOptional(),
  }),
  z.object({ type: z.literal('fetch'), url: z.string() }),
  z.object({ type: z.literal('connect'), host: z.string(), port: z.number(), command: z.string() }),
  z.object({ type: z.literal('ask') }),
  z.object({ type: z.literal('tool'), name: z.string(), readOnly: z.boolean() }),
])

/** What a tool may add to the log, besides its result. */
const record = z.union([
  z.object({
    type: z.literal('file_read'),
    fileRead: z.object({ path: z.string(), size: z.number() }),
  }),
  z.object({
    type: z.literal('file_write'),
    fileWrite: z.object({
      path: z.string(),
      size: z.number(),
      sha256Before: z.string().exactOptional(),
      sha256After: z.string(),
    }),
  }),
  z.object({
    type: z.literal('blocked'),
    blocked: z.object({
      kind: z.enum(['write', 'network', 'socket', 'hidden']),
      what: z.string(),
      count: z.number(),
      kept: z.string().exactOptional(),
      outcome: z.enum(['applied', 'discarded']).exactOptional(),
    }),
  }),
])

const outcome = z.object({
  /** A `ToolOutput`. The service takes only text and images from it. */
  output: z.unknown(),
  /** Of a command that has ended. */
  exitCode: z.int().exactOptional(),
  records: z.array(record).max(1000),
  blobs: z.array(z.object({ sha256: z.string(), data: z.base64() })).max(100),
})

const jobId = z.string().regex(/^job-[0-9a-f]{12}$/)
/** A `Job`. */
const job = z.object({
  id: jobId,
  command: z.string().max(200_000),
  startedAt: z.string().max(40),
  status: z.enum(['running', 'ended', 'lost']),
  exit: z
    .object({
      cause: z.enum(['exited', 'timed-out', 'stopped', 'overflowed', 'not-started']),
      code: z.int().nullable(),
      signal: z.string().max(40).nullable(),
      durationMs: z.number(),
    })
    .exactOptional(),
})

/** More background commands of a session are not listed. */
export const maxListedJobs = 200
/** How long a host waits at most for more output of a job. */
export const maxJobWaitMs = 60_000

const tree = z.string().regex(/^[0-9a-f]{40,64}$/)
/** A part of a pack. */
const part = z.base64().max(8 * 1024 * 1024)
const leftOut = z.array(z.object({ path: z.string(), reason: z.string() })).max(100)

/** What the service sends to a host. */
export const hostRequest = z.discriminatedUnion('type', [
  /** Starts a call, or attaches to the call with this id. `from`: how many characters of its output are known. */
  z.object({
    type: z.literal('call'),
    id,
    session: id,
    run: z.string().max(200),
    call: z.string().max(1000),
    workspace: name,
    tool: name,
    input,
    /** What the service has allowed. The host does nothing if the call would touch other files. */
    judged: z.array(access).max(1000),
    box: z.enum(['writable', 'read-only']).exactOptional(),
    /** The model that reads the result. */
    model: z.object({ provider: z.string(), id: z.string(), hasImages: z.boolean() }).exactOptional(),
    from: z.int().min(0),
    /** It is to be stopped. If it has not started, it does not start. */
    isStopped: z.boolean().exactOptional(),
    /** It was to be sent before. If it has not started, it does not start. */
    onlyAttach: z.boolean().exactOptional(),
  }),
  z.object({ type: z.literal('cancel'), id }),
  /** Asks for the files of a workspace. `base`: the tree that the service has already. */
  z.object({ type: z.literal('files'), id, workspace: name, base: tree.exactOptional() }),
  /** Asks for the next part of their pack, and for the end of it when nothing is left. */
  z.object({ type: z.literal('part'), id, off: z.int().min(0) }),
  /** Offers files for an empty workspace: packs of so many bytes. The host asks for their parts. */
  z.object({
    type: z.literal('recreate'),
    id,
    workspace: name,
    tree,
    packs: z.array(z.int().min(1)).min(1).max(maxPacks),
  }),
  /** The part that the host has asked for. */
  z.object({ type: z.literal('data'), id, off: z.int().min(0), data: part }),
  /** Asks for the background commands of a session. */
  z.object({ type: z.literal('jobs'), id, session: id }),
  /** Asks for the newest output of one: at once, or when there is more than `after`, or after `waitMs`. */
  z.object({
    type: z.literal('job_output'),
    id,
    session: id,
    job: jobId,
    limitBytes: z
      .int()
      .min(1)
      .max(1024 * 1024),
    after: z.int().min(0).exactOptional(),
    waitMs: z.int().min(0).max(maxJobWaitMs).exactOptional(),
  }),
  /** Stops one with all of its processes. */
  z.object({ type: z.literal('stop_job'), id, session: id, job: jobId }),
  /** The result of the call is in the log: the host can forget it. */
  z.object({ type: z.literal('settled'), id, session: id }),
  z.object({
    type: z.literal('reached'),
    id,
    question: z.int(),
    verdict: z
      .union([z.object({ type: z.literal('allowed') }), z.object({ type: z.literal('denied'), reason: z.string() })])
      .exactOptional(),
  }),
])

const workspace = z.object({
  name,
  folder: z.string().max(4096),
  /** The most that the host allows. */
  mode: z.string().max(40),
  /** What a command in its sandbox may do. Absent: it has none. */
  sandbox: z.string().max(2000).exactOptional(),
  tools: z
    .array(
      z.object({
        name,
        description: z.string().max(20_000),
        inputSchema: z.record(z.string(), z.unknown()),
        readOnly: z.boolean(),
        /** Null: the tool has a deadline of its own. */
        deadlineMs: z.number().nullable(),
      }),
    )
    .max(500),
  instructions: z.array(z.object({ path: z.string(), text: z.string().max(200_000) })).max(20),
  /** Whether sessions may keep its files. */
  sharesFiles: z.boolean().exactOptional(),
})

/** What a host sends to the service. */
export const hostMessage = z.discriminatedUnion('type', [
  /** The first message. The id of the host is made from its key, which only the host knows: nobody else can use its id. */
  z.object({
    type: z.literal('hello'),
    protocol: z.number(),
    key: z.string().regex(/^[0-9a-f]{64}$/),
    name,
    platform: z.string().max(40),
    workspaces: z.array(workspace).max(100),
  }),
  z.object({ type: z.literal('output'), id, off: z.int().min(0), text: z.string().max(1024 * 1024) }),
  z.object({ type: z.literal('done'), id, outcome }),
  /** The host does not allow the call. Nothing was done. */
  z.object({ type: z.literal('refused'), id, reason: z.string().max(10_000) }),
  /** The call would touch other files than the service has allowed. Nothing was done. */
  z.object({ type: z.literal('elsewhere'), id, access: z.array(access).max(1000) }),
  /** The files of a workspace. Their pack has so many bytes; 0 if they have not changed since `base`. */
  z.object({
    type: z.literal('files'),
    id,
    tree,
    base: tree.exactOptional(),
    size: z.int().min(0),
    leftOut,
    leftOutCount: z.int().min(0),
    head: z.string().max(100).exactOptional(),
    branch: z.string().max(1000).exactOptional(),
  }),
  z.object({ type: z.literal('data'), id, off: z.int().min(0), data: part }),
  /** Asks for a part of the packs, from this byte on. */
  z.object({ type: z.literal('part'), id, off: z.int().min(0) }),
  z.object({ type: z.literal('recreated'), id, files: z.int(), leftOut: z.array(z.string()).max(100) }),
  /** The newest first. For one that was asked for: that one, or none if the session has no such job. */
  z.object({
    type: z.literal('jobs'),
    id,
    jobs: z.array(job).max(maxListedJobs),
    output: z.object({ text: z.string().max(4 * 1024 * 1024), end: z.int(), isCut: z.boolean() }).exactOptional(),
  }),
  /** A command in the sandbox wants to reach a host of the network. */
  z.object({ type: z.literal('reach'), id, question: z.int(), host: z.string().max(300), port: z.int() }),
])

export type HostRequest = z.output<typeof hostRequest>
export type HostMessage = z.output<typeof hostMessage>
type Hello = Extract<HostMessage, { type: 'hello' }>
/** What everybody may know of a host. */
export type HostHello = Omit<Extract<HostMessage, { type: 'hello' }>, 'type' | 'protocol' | 'key'> & { id: string }
export type HostedWorkspace = HostHello['workspaces'][number]
export type CallRequest = Extract<HostRequest, { type: 'call' }>
export type CallOutcome = z.output<typeof outcome>
export type HostRecord = CallOutcome['records'][number]

/** What a host says of itself, without its key. */
export function introduced({ key, name: given, platform, workspaces }: Hello): HostHello {
  const made = createHash('sha256').update(key).digest('hex').slice(0, 24)
  return { id: `host-${made}`, name: given, platform, workspaces }
}

/** The message in a text, or undefined if it is none of these. */
export function parseMessage<T>(schema: z.ZodType<T>, text: string): T | undefined {
  if (text.length > maxHostMessageBytes) return undefined
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    // It is not JSON.
    return undefined
  }
}
