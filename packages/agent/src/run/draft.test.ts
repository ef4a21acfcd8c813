import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { LiveText } from '@tapetree/session/view'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { noDraft, openDraft, readDraft, removeDraft } from './draft.ts'

let folder = ''
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), 'draft-'))))
afterAll(() => rm(folder, { recursive: true }))
beforeEach(() => removeDraft(folder))

const live = (text: string, off = 0, more: Partial<LiveText> = {}): LiveText => ({
  type: 'delta',
  item: 'one',
  part: 0,
  kind: 'text',
  off,
  text,
  run: 'r',
  ...more,
})
const written = (): Promise<string> => readFile(join(folder, 'draft.jsonl'), 'utf8').catch(() => '')

describe('a draft', () => {
  test('is in the file within moments, with adjacent texts as one line', async () => {
    const draft = openDraft(folder)
    draft.add(live('he'))
    draft.add(live('llo', 2))
    await expect.poll(written).toBe('{"item":"one","run_id":"r","part":0,"kind":"text","off":0,"text":"hello"}\n')
    await draft.clear()
    expect(await written()).toBe('')
    await draft.close()
  })

  test('that is closed with text in flight keeps that text for the next process', async () => {
    const draft = openDraft(folder)
    draft.add(live('the log could not be written'))
    await draft.close()
    expect(await readDraft(folder)).toMatchObject({ content: [{ text: { content: 'the log could not be written' } }] })
  })

  test('is written at once when it has much text', async () => {
    const draft = openDraft(folder)
    draft.add(live('x'.repeat(5000)))
    draft.add(live('y', 5000))
    await expect.poll(written).toContain('xxx')
    expect(await written()).not.toContain('y')
    await draft.close()
  })

  test('of each of many sessions is written, cleared and written again in this order', async () => {
    const folders = Array.from({ length: 60 }, (_, index) => join(folder, `many-${index}`))
    const drafts = await Promise.all(
      folders.map(async (each) => {
        await mkdir(each)
        return openDraft(each)
      }),
    )
    const textOf = async (each: string): Promise<unknown> => (await readDraft(each))?.content[0]
    for (const round of ['one', 'two', 'three', 'four']) {
      const half = `${round} and `
      for (const [index, draft] of drafts.entries()) draft.add(live(half + index, 0, { item: round }))
      await expect.poll(() => textOf(folders.at(-1) ?? '')).toMatchObject({ text: { content: `${half}59` } })
      for (const [index, draft] of drafts.entries()) draft.add(live('!', `${half}${index}`.length, { item: round }))
      if (round === 'four') break
      await Promise.all(drafts.map((draft) => draft.clear()))
      expect((await Promise.all(folders.map(textOf))).filter((text) => text !== undefined)).toEqual([])
    }
    await Promise.all(drafts.map((draft) => draft.close()))
    for (const [index, each] of folders.entries())
      expect(await textOf(each)).toMatchObject({ text: { content: `four and ${index}!` } })
  })

  test('of each of many sessions lets the process end by itself, with all text written', async () => {
    const program = `
      import { mkdirSync, readFileSync } from 'node:fs'
      import { setTimeout as sleep } from 'node:timers/promises'
      import { openDraft } from ${JSON.stringify(new URL('draft.ts', import.meta.url).href)}
      const folders = Array.from({ length: 30 }, (_, index) => process.argv[2] + '/session-' + index)
      for (const folder of folders) mkdirSync(folder)
      const drafts = folders.map((folder) => openDraft(folder))
      let off = 0
      const add = () => {
        for (const draft of drafts) draft.add({ type: 'delta', item: 'one', part: 0, kind: 'text', off, text: 'abc', run: 'r' })
        off += 3
      }
      for (let round = 0; round < 20; round++) {
        add()
        await sleep(40)
      }
      await Promise.all(drafts.map((draft) => draft.close()))
      const complete = folders.filter((folder) => {
        const lines = readFileSync(folder + '/draft.jsonl', 'utf8').trim().split('\\n')
        return lines.map((line) => JSON.parse(line).text).join('').length === off
      })
      console.log(complete.length)`
    const place = await mkdtemp(join(tmpdir(), 'drafts-'))
    await writeFile(join(place, 'program.ts'), program)
    const flags = ['-C', '@tapetree/source', join(place, 'program.ts'), place]
    const { stdout } = await promisify(execFile)(process.execPath, flags, { timeout: 20_000 })
    expect(stdout).toBe('30\n')
    await rm(place, { recursive: true })
  })

  test('is read back part by part', async () => {
    const draft = openDraft(folder)
    draft.add(live('thought', 0, { kind: 'reasoning' }))
    draft.add(live('said', 0, { part: 1 }))
    draft.add(live('{"a', 0, { part: 2, kind: 'tool_input' }))
    await expect.poll(written).toContain('tool_input')
    expect(await readDraft(folder)).toEqual({
      item: 'one',
      content: [
        { type: 'reasoning', reasoning: { text: 'thought' } },
        { type: 'text', text: { content: 'said' } },
        { type: 'text', text: { content: '{"a' } },
      ],
    })
    await draft.close()
  })

  test('of an older item is replaced by the newer one', async () => {
    const lines = [live('old'), live('new', 0, { item: 'two' })].map((line) => `${JSON.stringify(line)}\n`)
    await writeFile(join(folder, 'draft.jsonl'), lines.join(''))
    expect(await readDraft(folder)).toMatchObject({ item: 'two', content: [{ text: { content: 'new' } }] })
  })

  test('with a missing line keeps the text before the gap, and ignores a torn last line', async () => {
    const lines = [live('ab'), live('ef', 4)].map((line) => `${JSON.stringify(line)}\n`)
    await writeFile(join(folder, 'draft.jsonl'), `${lines.join('')}{"item":"one","par`)
    expect(await readDraft(folder)).toMatchObject({ content: [{ text: { content: 'ab' } }] })
  })

  test('that was never written is undefined', async () => {
    expect(await readDraft(folder)).toBeUndefined()
  })

  test('that cannot be written does not stop the run', async () => {
    const draft = openDraft(join(folder, 'not-there'))
    draft.add(live('x'.repeat(5000)))
    await draft.clear()
    await draft.close()
    expect(openDraft(undefined)).toBe(noDraft)
  })
})
