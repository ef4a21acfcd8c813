import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fakeHome, type FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { startCommand } from '../terminal/command.ts'
import { startTerminal, type Terminal } from '../terminal/terminal.ts'
import { call, say, sayAndWait, shownTo } from './answers.ts'
import type { Experiment } from './experiment.ts'
import { logLines, untilThere, untilWritten } from './session-files.ts'

/** Continues the session in the chat, and takes the offer to go on with what was interrupted. */
async function resumeInChat(home: FakeHome): Promise<Terminal> {
  const terminal = startTerminal({ home, args: ['-c'] })
  await terminal.waitFor(/resume/i)
  terminal.press('enter')
  return terminal
}

const midAnswer: Experiment = {
  experiment: '`kill -9` in the middle of an answer',
  others: 'pi, opencode, Codex, Claude Code: all streamed text lost, the turn is not resumed',
  attempt: async () => {
    await using home = await fakeHome()
    home.provider.script(sayAndWait(['Half ', 'an ', 'answer. '], 'never', ['The rest.']), say('A whole answer.'))
    await using run = startCommand({ home, args: ['run', 'Tell me'] })
    await untilWritten(home, 'draft.jsonl', 'Half ')
    await run.kill()
    await using terminal = await resumeInChat(home)
    await terminal.waitFor('A whole answer.')
    const lines = await logLines(home)
    const attempt = lines.find((line) => line.includes('"type":"attempt"')) ?? ''
    assert.match(attempt, /Half/)
    assert.equal(lines.filter((line) => line.includes('"type":"run_start"')).length, 2)
    assert.deepEqual(shownTo(await home.provider.request(2)), ['user: Tell me'])
    return 'the streamed text is in the log as an attempt, and the turn is resumed'
  },
}

const withWaiting: Experiment = {
  experiment: 'the same with a message waiting in the queue',
  others:
    'pi: gone. opencode: stored, never run. Claude Code: recorded, silently dropped on resume. Codex: run at once although the first task died',
  attempt: async () => {
    await using home = await fakeHome()
    home.provider.script(sayAndWait(['Half '], 'never', []), say('First answer.'), say('Second answer.'))
    await using chat = startTerminal({ home, args: ['First question'] })
    await untilWritten(home, 'draft.jsonl', 'Half')
    chat.type('Second question')
    chat.press('enter')
    await untilWritten(home, 'events.jsonl', 'Second question')
    chat.kill()
    await chat.exit
    await using terminal = await resumeInChat(home)
    await terminal.waitFor('Second answer.')
    const requests = await Promise.all([2, 3].map((number) => home.provider.request(number)))
    assert.deepEqual(requests.map(shownTo), [
      ['user: First question'],
      ['user: First question', 'assistant: First answer.', 'user: Second question'],
    ])
    return 'kept; the first turn is resumed, then the message goes out, once'
  },
}

const midCommand: Experiment = {
  experiment: '`kill -9` the agent in the middle of a shell command, then resume',
  others:
    'in 4 of 5 the command ran to its end; the model was told "interrupted", "aborted", "no result"; Gemini ran it a second time. None returned the real result',
  attempt: async () => {
    await using home = await fakeHome({ settings: { permissions: { mode: 'auto' } } })
    const begun = join(home.cwd, 'begun')
    const command = `echo once >> begun; sleep 1; echo the real result; echo done > ended; exit 3`
    home.provider.script(call({ id: 'call_1', name: 'bash', input: { command } }), say('Thank you.'))
    await using run = startCommand({ home, args: ['run', 'Go'] })
    await untilThere(begun)
    await run.kill()
    await untilThere(join(home.cwd, 'ended'))
    await using terminal = await resumeInChat(home)
    await terminal.waitFor('Thank you.')
    const result = shownTo(await home.provider.request(2)).find((line) => line.startsWith('tool: ')) ?? ''
    assert.match(result, /the real result/)
    assert.match(result, /Exit code 3/)
    assert.equal(await readFile(begun, 'utf8'), 'once\n')
    return 'it ran once and to its end; the model gets its real output and exit code'
  },
}

const oneOfTwo: Experiment = {
  experiment: 'one of two parallel tools finished, then `kill -9`',
  others: 'pi: finished result lost',
  attempt: async () => {
    await using home = await fakeHome({
      settings: { permissions: { mode: 'auto' }, web: { allowPrivateAddresses: true } },
    })
    await writeFile(join(home.cwd, 'a.txt'), 'as it was then\n')
    // The first visit is left waiting, the second one is answered.
    let visits = 0
    const visited = Promise.withResolvers<void>()
    const pages = createServer((_, response) => {
      visits += 1
      visited.resolve()
      if (visits > 1) response.setHeader('content-type', 'text/plain').end('the page')
    })
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve))
    try {
      const url = `http://127.0.0.1:${(pages.address() as AddressInfo).port}/`
      home.provider.script(
        call(
          { id: 'call_read', name: 'read', input: { path: 'a.txt' } },
          { id: 'call_fetch', name: 'fetch', input: { url } },
        ),
        say('Both seen.'),
      )
      await using run = startCommand({ home, args: ['run', 'Go'] })
      await untilWritten(home, 'events.jsonl', 'as it was then')
      await visited.promise
      await run.kill()
      await writeFile(join(home.cwd, 'a.txt'), 'changed since\n')
      await using terminal = await resumeInChat(home)
      await terminal.waitFor('Both seen.')
    } finally {
      pages.closeAllConnections()
      pages.close()
    }
    const results = shownTo(await home.provider.request(2)).filter((line) => line.startsWith('tool: '))
    assert.equal(results.length, 2)
    assert.match(results.join('\n'), /as it was then/)
    assert.match(results.join('\n'), /the page/)
    assert.doesNotMatch(results.join('\n'), /changed since/)
    return 'the finished result is kept as it was; only the other call is made again'
  },
}

export const killExperiments: readonly Experiment[] = [midAnswer, withWaiting, midCommand, oneOfTwo]
