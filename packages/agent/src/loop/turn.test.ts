import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openFileStore } from '@tapetree/session/stores/file'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { script, scriptedModel, type ScriptBuilder } from '../testing/scripted-model.ts'
import { TestAgent } from '../testing/test-agent.ts'

let folder = ''
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'turn-'))))
afterAll(() => rm(folder, { recursive: true }))

const long = 'so '.repeat(2000)

test.each<[string, (written: () => Promise<void>) => ScriptBuilder, string]>([
  ['an answer', (written) => script().text(long).do(written), 'message'],
  ['a failed answer', (written) => script().text(long).do(written).error('invalid-request'), 'attempt'],
])('what %s has said stays in the draft until it is in the log', async (_, answer, type) => {
  const store = openFileStore({ folder })
  // Drafts are written beside the event loop: the answer ends when its text has arrived there.
  const written = (): Promise<void> => vi.waitFor(() => expect(draft()).toContain(long))
  const agent = await TestAgent.open({ model: scriptedModel(answer(written)), store })
  const draft = (): string => readFileSync(join(agent.session.localFolder as string, 'draft.jsonl'), 'utf8')
  const drafts: string[] = []
  agent.session.subscribe(({ line, text }) => {
    if (line.type === type && text.includes(long)) drafts.push(draft())
  })
  await agent.prompt('go')
  expect(drafts).toEqual([expect.stringContaining(long)])
  expect(draft()).toBe('')
  await agent.close()
  await store.close()
})
