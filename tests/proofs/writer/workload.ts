import { SessionError, text, type Cause, type Content, type Session, type WaitingMessage } from '@tapetree/session'

/** What one producer knows and uses; several of them share a session. */
export interface Producer {
  session: Session
  random: () => number
  sampleText: (length: number) => string
  /** Entries that this producer appended, to go back to. */
  entries: string[]
}

/**
 * Appends something and gives the payload as it should lie in the log (snake_case), for comparison; undefined where another
 * producer was quicker and nothing was appended.
 */
export async function appendSomething(producer: Producer, cause: Cause): Promise<unknown> {
  const total = mix.reduce((sum, [weight]) => sum + weight, 0)
  let rest = producer.random() * total
  const [, step] = mix.find(([weight]) => (rest -= weight) < 0) ?? [0, appendSmall]
  try {
    return await step(producer, cause)
  } catch (error) {
    if (error instanceof SessionError && lostRaces.has(error.code)) return undefined
    throw error
  }
}

/** A producer may find that the message it wants to change was just delivered by another one, and so on. */
const lostRaces = new Set(['message-not-found', 'session-busy', 'not-in-context'])

type Step = (producer: Producer, cause: Cause) => Promise<unknown>

const mix: [weight: number, step: Step][] = [
  [50, appendSmall],
  [6, appendLongLine],
  [3, appendLargeValue],
  [2, appendImage],
  [2, appendStoredImage],
  [8, appendCustom],
  [8, submit],
  [8, changeInbox],
  [4, deliver],
  [4, branch],
  [2, branchWithSummary],
  [3, label],
  [2, rename],
  [6, appendRecord],
  [1, compact],
]

async function appendSmall(producer: Producer, cause: Cause): Promise<unknown> {
  return appendText(producer, cause, 1 + Math.floor(producer.random() ** 3 * 4000))
}

/** Just below the size where values move to blobs. */
async function appendLongLine(producer: Producer, cause: Cause): Promise<unknown> {
  return appendText(producer, cause, 90_000 + Math.floor(producer.random() * 40_000))
}

async function appendLargeValue(producer: Producer, cause: Cause): Promise<unknown> {
  return appendText(producer, cause, 200_000 + Math.floor(producer.random() * 200_000))
}

async function appendText(producer: Producer, cause: Cause, length: number): Promise<unknown> {
  return appendMessage(producer, cause, [text(producer.sampleText(length))])
}

async function appendMessage(
  { session, entries, random }: Producer,
  cause: Cause,
  content: Content[],
): Promise<unknown> {
  const role = random() < 0.5 ? 'user' : 'assistant'
  entries.push(await session.appendMessage(role, content, { cause }))
  return { role, content: onDisk(content) }
}

/** Large enough to be moved out of the line. */
async function appendImage(producer: Producer, cause: Cause): Promise<unknown> {
  const data = randomBytes(producer.random, 160_000).toString('base64')
  return appendMessage(producer, cause, [
    { type: 'image', image: { source: { type: 'base64', mediaType: 'image/png', data } } },
  ])
}

/** The blob first, then the line that names it. */
async function appendStoredImage(producer: Producer, cause: Cause): Promise<unknown> {
  const reference = await producer.session.putBlob(randomBytes(producer.random, 5000))
  const source = { type: 'blob' as const, mediaType: 'image/png', ...reference }
  return appendMessage(producer, cause, [text('see this'), { type: 'image', image: { source } }])
}

async function appendCustom({ session, entries, sampleText, random }: Producer, cause: Cause): Promise<unknown> {
  const data = { note: sampleText(100), camelCase: { snake_case: random() }, list: [1, null, true] }
  entries.push(await session.appendCustomEntry('proof', data, { cause }))
  return { custom_type: 'proof', data }
}

async function submit({ session, sampleText, random }: Producer, cause: Cause): Promise<unknown> {
  const delivery = random() < 0.5 ? ('steer' as const) : ('follow-up' as const)
  const { id, message, queuedAt } = await session.submit(sampleText(200), { delivery, cause })
  return { action: 'add', id, delivery, message, image_ids: [], queued_at: queuedAt }
}

async function changeInbox({ session, sampleText, random }: Producer, cause: Cause): Promise<unknown> {
  const { messages } = session.inbox
  const waiting = pick(messages, random)
  if (!waiting) return undefined
  const { id } = waiting
  const change = pick(
    [
      { action: 'edit', id, message: sampleText(150) } as const,
      { action: 'hold', id } as const,
      { action: 'release', id } as const,
      { action: 'release' } as const,
      { action: 'remove', id } as const,
      ...(messages.length > 40 ? [{ action: 'clear' } as const] : []),
    ],
    random,
  ) as { action: 'remove'; id: string }
  await session.changeInbox(change, cause)
  return change
}

async function deliver({ session, random, entries }: Producer, cause: Cause): Promise<unknown> {
  const waiting: WaitingMessage | undefined = pick(session.inbox.messages, random)
  if (!waiting) return undefined
  const { id } = waiting
  const entryId = await session.deliver(id, { cause })
  entries.push(entryId)
  // What another producer was just changing in it goes out with it.
  const { message } = (await session.getEntry(entryId)) as { message: { content: Content[] } }
  return { role: 'user', content: message.content, submission_id: id }
}

async function branch({ session, entries, random }: Producer, cause: Cause): Promise<unknown> {
  const target = pick([...entries.slice(-20), null], random) ?? null
  await session.branch(target, { cause })
  return { target_id: target }
}

async function branchWithSummary(producer: Producer, cause: Cause): Promise<unknown> {
  const { session, entries, random, sampleText } = producer
  const target = pick(entries, random)
  if (target === undefined) return undefined
  const summary = sampleText(300)
  const id = await session.branchWithSummary(target, summary, { cause })
  entries.push(id)
  const { branchSummary } = (await session.getEntry(id)) as { branchSummary: { fromId: string } }
  return { summary, from_id: branchSummary.fromId }
}

async function label({ session, entries, random, sampleText }: Producer, cause: Cause): Promise<unknown> {
  const target = pick(entries, random)
  if (target === undefined) return undefined
  const name = sampleText(12)
  await session.setLabel(target, name, { cause })
  return { target_id: target, label: name }
}

async function rename({ session, sampleText }: Producer, cause: Cause): Promise<unknown> {
  const name = sampleText(30)
  await session.appendSessionInfo(name, { cause })
  return { name }
}

async function appendRecord({ session, sampleText }: Producer, cause: Cause): Promise<unknown> {
  const plan = { items: [{ text: sampleText(80), status: 'pending' as const }] }
  await session.append({ type: 'plan', plan }, { cause })
  return plan
}

async function compact({ session, sampleText }: Producer, cause: Cause): Promise<unknown> {
  const { leafId } = session
  if (leafId === null) return undefined
  const summary = sampleText(500)
  await session.appendCompaction(summary, leafId, 1000, { cause })
  return { summary, first_kept_entry_id: leafId, tokens_before: 1000 }
}

function onDisk(content: Content[]): unknown[] {
  return content.map((each) => {
    if (each.type !== 'image') return each
    const { mediaType, ...source } = each.image.source
    return { type: 'image', image: { source: { ...source, media_type: mediaType } } }
  })
}

function randomBytes(random: () => number, count: number): Buffer {
  const words = Uint32Array.from({ length: Math.ceil(count / 4) }, () => random() * 2 ** 32)
  return Buffer.from(words.buffer).subarray(0, count)
}

function pick<T>(items: readonly T[], random: () => number): T | undefined {
  return items[Math.floor(random() * items.length)]
}
