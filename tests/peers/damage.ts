import assert from 'node:assert/strict'
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { runCommand, type CommandEnd } from '../terminal/command.ts'
import { say, shownTo } from './answers.ts'
import type { Experiment } from './experiment.ts'
import { sessionFolder, sessionsFolder } from './session-files.ts'

async function tapetree(home: FakeHome, ...args: string[]): Promise<CommandEnd> {
  return runCommand({ home, args })
}

/** A session in which two questions were asked and answered. */
async function conversation(home: FakeHome): Promise<string> {
  home.provider.script(say('Answer one.'), say('Answer two.'), say('Answer three.'))
  assert.equal((await tapetree(home, 'run', 'Question one')).code, 0)
  assert.equal((await tapetree(home, 'run', '-c', 'Question two')).code, 0)
  return join(await sessionFolder(home), 'events.jsonl')
}

/** A script does not go on with a log that has lost something before somebody has seen that. */
async function refusedUntilRepaired(home: FakeHome, args: readonly string[], session: string): Promise<void> {
  const refused = await tapetree(home, ...args)
  assert.equal(refused.code, 7, refused.stderr)
  assert.match(refused.stderr, /tapetree log repair/)
  const repaired = await tapetree(home, 'log', 'repair', session)
  assert.equal(repaired.code, 0, repaired.stderr)
  const ran = await tapetree(home, ...args)
  assert.equal(ran.code, 0, ran.stderr)
}

const tornLine: Experiment = {
  experiment: 'last line of the log torn',
  others: '4 of 4 JSONL agents lose the record without a word; Gemini also welds two records together',
  attempt: async () => {
    await using home = await fakeHome()
    const log = await conversation(home)
    const torn = '{"seq":99,"type":"message","id":"m-9","parent_id":"m'
    await appendFile(log, torn)
    const verified = await tapetree(home, 'log', 'verify', 'last')
    assert.equal(verified.code, 7)
    assert.equal((await tapetree(home, 'run', '-c', 'Question three')).code, 0)
    assert.deepEqual(shownTo(await home.provider.request(3)), [
      'user: Question one',
      'assistant: Answer one.',
      'user: Question two',
      'assistant: Answer two.',
      'user: Question three',
    ])
    assert.equal(await readFile(`${log}.torn-1`, 'utf8'), torn)
    for (const line of (await readFile(log, 'utf8')).trimEnd().split('\n')) JSON.parse(line)
    return '`log verify` tells it; the torn bytes are kept in a file of their own, nothing else is lost'
  },
}

const corruptLine: Experiment = {
  experiment: 'a corrupt line in the middle',
  others: 'pi: everything before it silently disappears from the context',
  attempt: async () => {
    await using home = await fakeHome()
    const log = await conversation(home)
    const before = await readFile(log, 'utf8')
    await writeFile(log, before.replace('Answer one.', 'Answer 0ne.'))
    const verified = await tapetree(home, 'log', 'verify', 'last')
    assert.equal(verified.code, 7)
    assert.match(verified.stdout, /line \d+ at byte \d+/)
    assert.match((await tapetree(home, 'sessions', 'show', 'last')).stdout, /damage/)
    const repaired = await tapetree(home, 'log', 'repair', 'last')
    assert.equal(repaired.code, 0, repaired.stderr)
    const ran = await tapetree(home, 'run', '-c', 'Question three')
    assert.equal(ran.code, 0, ran.stderr)
    const shown = shownTo(await home.provider.request(3)).join('\n')
    for (const words of ['Question one', 'Question two', 'Answer two.', 'Question three']) {
      assert.ok(shown.includes(words), `${words} is not in ${shown}`)
    }
    return 'that line is lost and no other; `log verify` tells which, `log repair` notes it, and the session goes on'
  },
}

const parentCycle: Experiment = {
  experiment: 'parent cycle in the file',
  others: 'pi: process dies of memory',
  attempt: async () => {
    await using home = await fakeHome()
    home.provider.script(say('Going on.'))
    await mkdir(join(sessionsFolder(home), 'cycle'), { recursive: true, mode: 0o700 })
    const parents = { a: 'c', b: 'a', c: 'b' }
    const lines = [
      `{"type":"session","id":"cycle","version":1,"timestamp":"2024-01-01T10:00:00Z","cwd":${JSON.stringify(home.cwd)}}`,
      ...Object.entries(parents).map(
        ([id, parent]) =>
          `{"type":"message","id":"${id}","parent_id":"${parent}","timestamp":"2024-01-01T10:00:00Z","message":{"role":"user","content":[{"type":"text","text":{"content":"Words ${id}"}}]}}`,
      ),
    ]
    await writeFile(join(sessionsFolder(home), 'cycle', 'events.jsonl'), `${lines.join('\n')}\n`)
    const shown = await tapetree(home, 'sessions', 'show', 'cycle')
    assert.equal(shown.code, 0, shown.stderr)
    await refusedUntilRepaired(home, ['run', '--session', 'cycle', 'Go on'], 'cycle')
    const said = shownTo(await home.provider.request(1)).join('\n')
    for (const words of ['Words a', 'Words b', 'Words c', 'Go on']) assert.ok(said.includes(words), said)
    return 'it opens, shows every message and reports the cycle; after `log repair` it goes on'
  },
}

export const damageExperiments: readonly Experiment[] = [tornLine, corruptLine, parentCycle]
