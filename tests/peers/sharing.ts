import assert from 'node:assert/strict'
import { basename } from 'node:path'
import { fakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { runCommand, startCommand } from '../terminal/command.ts'
import { startTerminal } from '../terminal/terminal.ts'
import { say, sayAndWait, shownTo } from './answers.ts'
import type { Experiment } from './experiment.ts'
import { logLines, sessionFolder, untilWritten } from './session-files.ts'

const rounds = 5

const twoProcesses: Experiment = {
  experiment: 'two processes on one session',
  others: 'pi: no torn lines, but half of the entries are invisible on resume',
  attempt: async () => {
    await using home = await fakeHome()
    home.provider.script(() => say('Answered.'))
    await using first = startCommand({ home, args: ['run', '--input', 'jsonl', '--jsonl'], stdin: { type: 'open' } })
    first.writeLine({ type: 'prompt', text: 'From the first' })
    await first.untilSaid('"type":"run_end"')
    for (let round = 1; round <= rounds; round++) {
      const { code, stderr } = await runCommand({
        home,
        args: ['run', '--session', 'last', `From the second ${round}`],
      })
      assert.equal(code, 0, stderr)
      first.writeLine({ type: 'prompt', text: `From the first ${round}` })
      // While the first is still finishing the other's run, the prompt is also written as one that waits.
      await first.untilSaid(new RegExp(`"role":"user".*"From the first ${round}"[^]*"type":"run_end"`))
    }
    first.endInput()
    await first.ended
    const { code, stderr } = await runCommand({ home, args: ['run', '-c', 'And now?'] })
    assert.equal(code, 0, stderr)
    const shown = shownTo(home.provider.requests.at(-1) ?? (await home.provider.request(1)))
    const said = shown.filter((line) => line.startsWith('user: '))
    assert.equal(said.length, 2 + 2 * rounds, said.join('\n'))
    for (const line of await logLines(home)) JSON.parse(line)
    return `the second one speaks through the first; all ${said.length} messages are there on resume, in one line of talk`
  },
}

const lateObserver: Experiment = {
  experiment: 'second observer joins in mid-answer',
  others: 'opencode: begins at token 112, Codex: at token 55; no replay',
  attempt: async () => {
    await using home = await fakeHome()
    const words = Array.from({ length: 120 }, (_, index) => `w${index + 1} `)
    home.provider.script(sayAndWait(words, 'go on', ['and END']))
    await using first = startCommand({ home, args: ['run', 'Count'] })
    await untilWritten(home, 'draft.jsonl', 'w110 ')
    const id = basename(await sessionFolder(home))
    await using second = startTerminal({ home, args: ['attach', id], rows: 40 })
    await second.waitFor((rows) => /\bw1 w2 w3 /.test(rows.join('\n')) && rows.join('\n').includes('w110'))
    home.provider.release('go on')
    await second.waitFor('END')
    assert.equal((await first.ended).code, 0)
    return 'is shown the answer from its first token, and then the rest as it comes'
  },
}

const goBack: Experiment = {
  experiment: 'go back to an earlier entry, restart',
  others: 'pi: the move is lost; a label written later becomes the leaf',
  attempt: async () => {
    await using home = await fakeHome()
    home.provider.script(say('Answer one.'), say('Answer two.'), say('Another way.'))
    for (const args of [
      ['run', 'Question one'],
      ['run', '-c', 'Question two'],
    ]) {
      assert.equal((await runCommand({ home, args })).code, 0)
    }
    const ids = (await logLines(home)).map((line) => JSON.parse(line) as { id: string; message?: { content: unknown } })
    const idOf = (words: string): string =>
      ids.find(({ message }) => JSON.stringify(message)?.includes(words))?.id ?? ''
    {
      await using chat = startTerminal({ home, args: ['-c'], rows: 40 })
      await chat.waitFor('Answer two.')
      chat.press('ctrl-t')
      await chat.waitFor('Enter go there')
      chat.type('/Answer one')
      await chat.waitFor('“Answer one”')
      chat.press('enter')
      await chat.waitFor('Enter go there')
      chat.press('enter')
      await untilWritten(home, 'events.jsonl', `"target_id":"${idOf('Answer one.')}"`)
      chat.kill()
      await chat.exit
    }
    const labelled = await runCommand({ home, args: ['sessions', 'label', 'last', idOf('Answer two.'), 'the old end'] })
    assert.equal(labelled.code, 0, labelled.stderr)
    assert.equal((await runCommand({ home, args: ['run', '-c', 'Question three'] })).code, 0)
    assert.deepEqual(shownTo(await home.provider.request(3)), [
      'user: Question one',
      'assistant: Answer one.',
      'user: Question three',
    ])
    return 'the move is kept, also by a `kill -9` right after it; the label is a label'
  },
}

export const sharingExperiments: readonly Experiment[] = [twoProcesses, lateObserver, goBack]
