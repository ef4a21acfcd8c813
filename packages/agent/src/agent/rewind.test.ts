import { memoryStore, type Session } from '@tapetree/session'
import { randomFrom } from '@tapetree/session/testing'
import { expect, test, vi } from 'vitest'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { newestUserMessage, RecordedFolder, twoChanges } from '../testing/recorded-folder.ts'
import { allowAll } from '../tools/tool.ts'
import { AgentSession } from './agent-session.ts'
import { onlyModel } from './model-choice.ts'

interface Stage extends AsyncDisposable {
  folder: RecordedFolder
  agent: AgentSession
  say: (text: string) => Promise<string>
}

async function stage(said: ScriptBuilder, files: Record<string, string>, { isRecorded = true } = {}): Promise<Stage> {
  const folder = await RecordedFolder.make(files)
  const { snapshotsFolder, ...options } = folder.agent
  const agent = await AgentSession.open({
    store: memoryStore(),
    models: onlyModel(scriptedModel(said)),
    gate: () => allowAll,
    hasSubagents: false,
    ...options,
    ...(isRecorded && { snapshotsFolder }),
  })
  const say = async (text: string): Promise<string> => {
    await agent.ask(text)
    return newestUserMessage(agent.session)
  }
  return {
    folder,
    agent,
    say,
    [Symbol.asyncDispose]: async () => {
      await agent.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('two turns are undone one after the other, and redone, in the conversation and in the files', async () => {
  await using place = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  const { agent, folder, say } = place
  const first = await say('one')
  const second = await say('two')
  const end = agent.session.leafId
  const parentOf = async (id: string): Promise<string | null> => (await agent.session.getEntry(id)).parentId

  const undone = await agent.rewind({ entryId: second })
  expect(undone).toMatchObject({
    leafId: await parentOf(second),
    text: 'two',
    files: { changes: [{ path: 'a.txt', change: 'changed', action: 'restored' }], skipped: [] },
  })
  expect([await folder.read('a.txt'), agent.session.leafId]).toEqual(['one\n', await parentOf(second)])

  await agent.rewind({ entryId: first })
  expect([await folder.read('a.txt'), agent.session.leafId]).toEqual(['zero\n', await parentOf(first)])

  await agent.rewind()
  expect([await folder.read('a.txt'), agent.session.leafId]).toEqual(['one\n', await parentOf(second)])
  await agent.rewind()
  expect([await folder.read('a.txt'), agent.session.leafId]).toEqual(['one\ntwo\n', end])
  await expect(agent.rewind()).rejects.toThrow('nothing to take back')
})

test('a dry run changes neither the conversation nor the files, and names conflicts', async () => {
  await using place = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  const { agent, folder, say } = place
  const first = await say('one')
  const end = agent.session.leafId
  await folder.write('a.txt', 'one\nmine\n')
  await folder.write('mine.txt', 'mine\n')
  expect(await agent.rewind({ entryId: first, isDryRun: true })).toMatchObject({
    text: 'one',
    files: {
      changes: [
        { path: 'a.txt', action: 'conflict', canMerge: true },
        { path: 'mine.txt', action: 'kept' },
      ],
    },
  })
  expect([await folder.read('a.txt'), agent.session.leafId]).toEqual(['one\nmine\n', end])
  const taken = await agent.rewind({ entryId: first, choices: { 'a.txt': 'take' } })
  expect(taken.files?.changes[0]).toMatchObject({ path: 'a.txt', action: 'restored' })
  expect([await folder.read('a.txt'), await folder.read('mine.txt')]).toEqual(['zero\n', 'mine\n'])
})

test('only the conversation, or only the files, goes back and comes again', async () => {
  await using place = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  const { agent, folder, say } = place
  const first = await say('one')
  const end = agent.session.leafId
  expect(await agent.rewind({ entryId: first, what: 'talk' })).not.toHaveProperty('files')
  expect(await folder.read('a.txt')).toBe('one\n')
  await agent.rewind()
  expect(agent.session.leafId).toBe(end)
  const files = await agent.rewind({ entryId: first, what: 'files' })
  expect([files.leafId, files.text, await folder.read('a.txt')]).toEqual([end, undefined, 'zero\n'])
  await agent.rewind()
  expect([agent.session.leafId, await folder.read('a.txt')]).toEqual([end, 'one\n'])
})

test('without snapshots the conversation goes back, and the preview says why the files do not', async () => {
  await using place = await stage(twoChanges(), {}, { isRecorded: false })
  const { agent, say } = place
  const first = await say('one')
  const end = agent.session.leafId
  expect(await agent.rewind({ entryId: first, isDryRun: true })).toMatchObject({
    files: { problem: 'The files of this session are not recorded.', changes: [] },
  })
  await expect(agent.rewind({ entryId: first })).rejects.toThrow('not recorded')
  expect(agent.session.leafId).toBe(end)
  await agent.rewind({ entryId: first, what: 'talk' })
  await agent.rewind()
  expect(agent.session.leafId).toBe(end)
  await agent.rewind({ entryId: first, what: 'talk' })
  await say('something else')
  await expect(agent.rewind()).rejects.toThrow('nothing to take back')
})

test('nothing goes back while the agent works', async () => {
  await using place = await stage(twoChanges(), {})
  const { agent } = place
  const outcome = await agent.prompt('one')
  await expect(agent.rewind({ entryId: null })).rejects.toMatchObject({ code: 'session-busy' })
  if (outcome.type === 'started') await outcome.run.done
})

test('a rewind of files that was interrupted is finished or undone before the next one', async () => {
  await using place = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  const { agent, folder, say } = place
  const first = await say('one')
  const { session } = agent
  const { tree: from = '', previous: to = '' } = session.lastSnapshot ?? {}
  const start = { restoreId: 'x', phase: 'start' as const, targetId: first, from, to }
  await session.append({ type: 'restore', restore: start })
  expect(session.openRestore).toMatchObject({ restoreId: 'x' })
  await expect(agent.rewind({ entryId: first })).rejects.toMatchObject({ code: 'open-restore' })
  expect(await agent.resumeRewind('finish')).toMatchObject({
    files: { changes: [{ path: 'a.txt', action: 'restored' }] },
  })
  expect([await folder.read('a.txt'), session.openRestore]).toEqual(['zero\n', undefined])
  await session.append({ type: 'restore', restore: { ...start, restoreId: 'y' } })
  await agent.resumeRewind('undo')
  expect(await folder.read('a.txt')).toBe('one\n')
})

const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))

test(`any order of prompts, undo and redo has the files and the conversation of an editor (seed ${seed})`, async () => {
  const random = randomFrom(seed)
  const turns = script()
  for (let turn = 0; turn < 20; turn++)
    turns
      .toolCall(`c${turn}`, 'put', { name: 'a.txt', content: `${turn}\n` })
      .step()
      .text(`Turn ${turn}.`)
      .step()
  await using place = await stage(turns, { 'a.txt': 'start\n' })
  const { agent, folder, say } = place
  interface State {
    message?: string
    leafId: string | null
    content: string
  }
  const states: State[] = [{ leafId: agent.session.leafId, content: 'start\n' }]
  let undone: State[] = []
  for (let step = 0; step < 14; step++) {
    const pick = random()
    const last = states.at(-1)
    if (pick < 0.35 || (states.length === 1 && undone.length === 0)) {
      const message = await say(`step ${step}`)
      states.push({ message, leafId: agent.session.leafId, content: await folder.read('a.txt') })
      undone = []
    } else if (pick < 0.7 && last?.message !== undefined) {
      await agent.rewind({ entryId: last.message })
      undone.push(last)
      states.pop()
      // The model and the mode are entries too: a message may follow them.
      const { parentId } = await agent.session.getEntry(last.message)
      expect(agent.session.leafId).toBe(parentId)
    } else {
      const next = undone.pop()
      if (!next) {
        await expect(agent.rewind()).rejects.toMatchObject({ code: 'nothing-to-undo' })
        continue
      }
      await agent.rewind()
      states.push(next)
      expect(agent.session.leafId).toBe(next.leafId)
    }
    expect(await folder.read('a.txt')).toBe(states.at(-1)?.content)
  }
})

test('going back a second time reads only the lines that were appended since', async () => {
  await using place = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  const { agent, folder, say } = place
  const first = await say('one')
  const { session } = agent
  const goBackAndAgain = async (): Promise<void> => {
    await agent.rewind({ entryId: first })
    await agent.rewind()
    await agent.rewind({ entryId: first, isDryRun: true })
    await expect(agent.rewind({ isDryRun: true })).rejects.toMatchObject({ code: 'nothing-to-undo' })
  }
  await goBackAndAgain()
  const known = session.head.seq
  const read: number[] = []
  const lines = session.lines.bind(session)
  vi.spyOn(session, 'lines').mockImplementation(async function* (options) {
    for await (const line of lines(options)) {
      read.push(line.seq)
      yield line
    }
  })
  await say('two')
  await goBackAndAgain()
  expect(await folder.read('a.txt')).toBe('one\ntwo\n')
  const appended = Array.from({ length: session.head.seq - known }, (_, index) => known + 1 + index)
  // The moves of the conversation and the files are each followed on their own.
  expect(read.toSorted((a, b) => a - b)).toEqual(appended.flatMap((seq) => [seq, seq]))
})

const crashes = (['the move of the conversation', 'the end of the restore'] as const).flatMap((at) =>
  (['undo', 'redo'] as const).flatMap((what) =>
    (['finish', 'undo'] as const).map((direction) => ({ at, what, direction })),
  ),
)

test.each(crashes)(
  'after a crash before $at, to $direction an interrupted $what brings files and conversation to one side',
  async ({ at, what, direction }) => {
    await using place = await stage(twoChanges(), { 'a.txt': 'zero\n' })
    const { agent, folder, say } = place
    const { session } = agent
    const first = await say('one')
    const state = async (): Promise<unknown> => [session.leafId, await folder.read('a.txt')]
    const go = (): Promise<unknown> => (what === 'undo' ? agent.rewind({ entryId: first }) : agent.rewind())
    if (what === 'redo') await agent.rewind({ entryId: first })
    const before = await state()
    crashBefore(session, at)
    await expect(go()).rejects.toThrow('crash')
    vi.restoreAllMocks()
    expect(session.openRestore).toBeDefined()
    await expect(go()).rejects.toMatchObject({ code: 'open-restore' })
    await agent.resumeRewind(direction)
    expect(session.openRestore).toBeUndefined()
    if (direction === 'undo') {
      expect(await state()).toEqual(before)
      await go()
    }
    const end = await state()
    expect(end).not.toEqual(before)
    if (what === 'undo') await agent.rewind()
    else await agent.rewind({ entryId: first })
    expect(await state()).toEqual(before)
  },
)

test('finishing an interrupted rewind returns the text of the message', async () => {
  await using place = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  const { agent, say } = place
  const first = await say('one')
  crashBefore(agent.session, 'the move of the conversation')
  await expect(agent.rewind({ entryId: first })).rejects.toThrow('crash')
  vi.restoreAllMocks()
  expect(await agent.resumeRewind('finish')).toMatchObject({ leafId: agent.session.leafId, text: 'one' })
})

test('a conversation that went on after a crash is not moved when the files are finished', async () => {
  await using place = await stage(twoChanges(), { 'a.txt': 'zero\n' })
  const { agent, folder, say } = place
  const { session } = agent
  const first = await say('one')
  crashBefore(session, 'the move of the conversation')
  await expect(agent.rewind({ entryId: first })).rejects.toThrow('crash')
  vi.restoreAllMocks()
  const later = await session.appendMessage('user', 'never mind')
  expect(await agent.resumeRewind('finish')).not.toHaveProperty('text')
  expect([session.leafId, await folder.read('a.txt')]).toEqual([later, 'zero\n'])
})

function crashBefore(session: Session, at: (typeof crashes)[number]['at']): void {
  const append = session.append.bind(session)
  if (at === 'the move of the conversation') vi.spyOn(session, 'branch').mockRejectedValue(new Error('crash'))
  else
    vi.spyOn(session, 'append').mockImplementation((draft, context) =>
      draft.type === 'restore' && draft.restore.phase === 'end'
        ? Promise.reject(new Error('crash'))
        : append(draft, context),
    )
}
