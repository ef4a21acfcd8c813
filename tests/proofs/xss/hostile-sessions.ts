import { text, type Content } from '@tapetree/session'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openStore } from '../../../packages/cli/src/host/open-store.ts'
import { placesOf } from '../../../packages/cli/src/host/places.ts'
import type { FakeHome } from '../../../packages/cli/src/testing/fake-home.ts'
import type { Payload } from './payloads.ts'

type Store = Awaited<ReturnType<typeof openStore>>
type Session = Awaited<ReturnType<Store['create']>>

/** Puts one payload into one place of a session. */
type Place = (session: Session, payload: string, index: number) => Promise<unknown>

/** Every place of a log from which a screen draws text. */
const places: Readonly<Record<string, Place>> = {
  'user message': (session, payload) => session.appendMessage('user', [text(payload)]),
  answer: (session, payload) => session.appendMessage('assistant', [text(payload)]),
  reasoning: (session, payload) =>
    session.appendMessage('assistant', [{ type: 'reasoning', reasoning: { text: payload } }]),
  'tool name': (session, payload, index) =>
    callWithResult(session, {
      id: `n${index}`,
      name: payload.slice(0, 100),
      input: { [payload]: payload },
      output: payload,
    }),
  command: (session, payload, index) =>
    callWithResult(session, { id: `b${index}`, name: 'bash', input: { command: payload }, output: payload }),
  'file name': (session, payload, index) =>
    callWithResult(session, { id: `r${index}`, name: 'read', input: { path: payload }, output: payload }),
  edit: (session, payload, index) =>
    callWithResult(session, {
      id: `e${index}`,
      name: 'edit',
      input: { path: payload, oldText: `old ${payload}`, newText: `new ${payload}` },
      output: `Edited ${payload}.\n\n${index % 2 === 0 ? payload : diffOf(payload)}`,
    }),
  write: (session, payload, index) =>
    callWithResult(session, {
      id: `w${index}`,
      name: 'write',
      input: { path: payload, content: payload },
      output: payload,
    }),
  'task list': (session, payload, index) =>
    callWithResult(session, {
      id: `t${index}`,
      name: 'todo_write',
      input: { items: [{ text: payload, status: payload }, payload] },
      output: payload,
    }),
  question: (session, payload, index) =>
    callWithResult(session, {
      id: `q${index}`,
      name: 'ask_user',
      input: { question: payload, options: [payload] },
      output: payload,
    }),
  subagent: (session, payload, index) =>
    callWithResult(session, {
      id: `s${index}`,
      name: 'task',
      input: { prompt: payload, agent: payload },
      output: payload,
    }),
  'own command': (session, payload) =>
    session.appendMessage('bashExecution', [], {
      with: { bashExecution: { command: payload, output: payload, exitCode: 1 } },
    }),
  image: (session, payload, index) =>
    session.appendMessage('user', [
      {
        type: 'image',
        image: {
          source:
            index % 2 === 0
              ? { type: 'url', mediaType: 'image/png', data: payload }
              : { type: 'base64', mediaType: payload, data: 'PHN2Zz4=' },
        },
      },
    ]),
  'failed answer': (session, payload) =>
    session.appendMessage('assistant', [text('x')], { with: { error: { kind: 'server', message: payload } } }),
  model: (session, payload) => session.appendModelChange(payload, payload),
  'thinking level': (session, payload) => session.appendThinkingLevelChange(payload),
  'branch summary': (session, payload) =>
    session.append({ type: 'branch_summary', branchSummary: { summary: payload, fromId: null } }),
  'custom entry': (session, payload) => session.appendCustomEntry(payload, { [payload]: payload }),
  label: async (session, payload) => session.setLabel(await session.appendMessage('user', [text('labelled')]), payload),
  compaction: async (session, payload) =>
    session.appendCompaction(payload, await session.appendMessage('user', [text('kept')]), 1),
}

export const placeNames = Object.keys(places)

export interface HostileSession {
  id: string
  /** The number of entries, each with a payload. */
  payloads: number
}

/**
 * Writes sessions in which each payload is once an answer and once in one of the other places, in turn. The names of the sessions are
 * payloads, too.
 */
export async function writeHostileSessions(
  home: FakeHome,
  { payloads, perSession }: { payloads: readonly Payload[]; perSession: number },
): Promise<HostileSession[]> {
  await using store = await openStore(placesOf(home))
  const written: HostileSession[] = []
  const others = placeNames.filter((name) => name !== 'answer')
  for (let start = 0; start < payloads.length; start += perSession) {
    const some = payloads.slice(start, start + perSession)
    await using session = await store.create({ cwd: home.cwd, name: some[0]?.text.slice(0, 200) ?? '' })
    for (const [index, { text: payload }] of some.entries()) {
      const place = others[(start + index) % others.length] ?? 'answer'
      await places['answer']?.(session, payload, index)
      // A compaction hides what is before it from the model, not from the screen. One place may refuse a text: then it cannot be there.
      await places[place]?.(session, payload, index).catch(() => undefined)
    }
    written.push({ id: session.id, payloads: some.length })
  }
  return written
}

/** Sessions whose names are payloads, and which have nothing else. Returns their ids. */
export async function writeHostileTitles(home: FakeHome, payloads: readonly Payload[]): Promise<string[]> {
  await using store = await openStore(placesOf(home))
  const ids: string[] = []
  for (const [index, { text: payload }] of payloads.entries()) {
    await using session = await store.create({ cwd: home.cwd, ...(index % 2 === 0 && { name: payload.slice(0, 200) }) })
    await session.appendMessage('user', [text(payload)])
    ids.push(session.id)
  }
  return ids
}

/** A session with branches, for the screens that show the whole of it. */
export interface BranchedSession {
  id: string
  /** The ends of two branches. */
  left: string
  right: string
}

/** Payloads in every place of two branches; as labels, models, tools and system prompts; and in the records that the player shows. */
export async function writeHostileBranches(home: FakeHome, payloads: readonly Payload[]): Promise<BranchedSession> {
  await using store = await openStore(placesOf(home))
  const texts = payloads.map(({ text: payload }) => payload)
  const some = (index: number): string => texts[index % texts.length] ?? ''
  await using session = await store.create({ cwd: home.cwd, name: some(0).slice(0, 200) })
  const tools = texts.slice(0, 20).map((payload) => ({
    name: payload.slice(0, 100),
    description: payload,
    inputSchema: { [payload]: payload },
  }))
  await session.append({ type: 'system', system: { prompt: texts.join('\n'), tools, sha256: 'a'.repeat(64) } })
  await places['compaction']?.(session, some(1), 0)
  const fork = await session.appendMessage('user', [text(some(2))])
  const names = placeNames.filter((name) => name !== 'compaction')
  const writeBranch = async (half: readonly string[]): Promise<string> => {
    await session.branch(fork)
    for (const [index, payload] of half.entries()) {
      await places[names[index % names.length] ?? '']?.(session, payload, index).catch(() => undefined)
      const answered = await session.appendMessage('assistant', [text(payload)], {
        with: { provider: payload, model: payload, usage: { inputTokens: 1, outputTokens: 1, cost: 1 + index } },
      })
      await session.setLabel(answered, payload.slice(0, 1000)).catch(() => undefined)
    }
    await writeRecords(session, half)
    return session.leafId ?? ''
  }
  await writeJobs(session, texts.slice(0, 12))
  const middle = Math.floor(texts.length / 2)
  return {
    id: session.id,
    left: await writeBranch(texts.slice(0, middle)),
    right: await writeBranch(texts.slice(middle)),
  }
}

/** Background commands that have ended. */
async function writeJobs({ localFolder = '' }: Session, texts: readonly string[]): Promise<void> {
  const exit = { cause: 'exited', code: 1, bytes: 1, durationMs: 1, deadlineMs: 1, leftBehind: [], survivors: [] }
  for (const [index, payload] of texts.entries()) {
    const folder = join(localFolder, 'spool', `job-${String(index).padStart(12, '0')}`)
    await mkdir(folder, { recursive: true })
    await writeFile(join(folder, 'job'), JSON.stringify({ command: payload }))
    await writeFile(join(folder, 'output'), `${payload}\n${payload}`)
    await writeFile(join(folder, 'exit'), JSON.stringify({ ...exit, signal: payload }))
  }
}

async function writeRecords(session: Session, texts: readonly string[]): Promise<void> {
  for (const [index, payload] of texts.slice(0, 10).entries()) {
    const requestId = `r${index}`
    const options = [{ optionId: payload, label: payload, kind: 'allow_once' as const }]
    await session.append({
      type: 'permission_request',
      permissionRequest: { requestId, tool: payload, title: payload, options },
    })
    await session.append({
      type: 'permission_result',
      permissionResult: { requestId, outcome: 'cancelled', text: payload },
    })
    await session.append({ type: 'error', error: { message: payload } })
  }
}

/** One session of answers, for texts that are cut. */
export async function writeAnswers(home: FakeHome, texts: readonly string[]): Promise<string> {
  await using store = await openStore(placesOf(home))
  await using session = await store.create({ cwd: home.cwd, name: 'cut' })
  for (const each of texts) await session.appendMessage('assistant', [text(each)])
  return session.id
}

interface Call {
  id: string
  name: string
  input: Record<string, unknown>
  output: string
}

async function callWithResult(session: Session, { id, name, input, output }: Call): Promise<void> {
  const use: Content = { type: 'tool_use', toolUse: { id, name, input } }
  await session.appendMessage('assistant', [use])
  await session.appendMessage('tool', [{ type: 'tool_result', toolResult: { toolUseId: id, content: output } }])
}

function diffOf(payload: string): string {
  const lines = payload.split('\n')
  const added = lines.map((line) => `+${line}`).join('\n')
  return `--- a/${lines[0]}\n+++ b/${lines[0]}\n@@ -1,1 +1,${lines.length} @@ ${lines[0]}\n-before\n${added}`
}
