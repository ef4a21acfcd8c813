import { expect, test } from 'vitest'
import { call, say, sayAndWait } from '../peers/answers.ts'
import { logLines, untilWritten } from '../peers/session-files.ts'
import { openChat, send, testHome } from './chat.ts'
import { runCommand, startCommand } from './command.ts'

// Whoever has not ended 5 seconds after such a signal is ended by it, and its exit code says so: 143 or 129.

test.each(['SIGTERM', 'SIGHUP'] as const)(
  'a chat that gets %s leaves in order: the terminal is as it was, and the run can be resumed',
  async (signal) => {
    const home = await testHome()
    home.provider.script(sayAndWait(['Half an answer ', 'and '], 'never', []))
    const chat = await openChat({ home })
    send(chat, 'Begin')
    await chat.waitFor('Half an answer')
    process.kill(chat.pid, signal)
    expect(await chat.exit).toBeLessThan(128)
    expect(chat.emulator.buffer.active.type).toBe('normal')
    expect(chat.emulator.modes).toMatchObject({ bracketedPasteMode: false, mouseTrackingMode: 'none' })
    expect((await logLines(home)).filter((line) => line.includes('"type":"run_end"'))).toEqual([])
    const { code, stdout } = await runCommand({ home, args: ['sessions', 'show', 'last'] })
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('Begin') as string })
  },
)

test('a run that gets SIGTERM in the middle of a command ends in order, and its session goes on', async () => {
  const home = await testHome({ settings: { permissions: { mode: 'auto' } } })
  home.provider.script(
    call({ id: 'call-1', name: 'bash', input: { command: 'echo begun; sleep 60' } }),
    say('Here I am again.'),
  )
  await using command = startCommand({ home, args: ['run', 'Begin'] })
  await untilWritten(home, 'events.jsonl', '"type":"tool_start"')
  process.kill(command.pid, 'SIGTERM')
  expect((await command.ended).code).toBe(130)
  expect((await logLines(home)).filter((line) => line.includes('"type":"run_end"'))).toHaveLength(1)
  expect(await runCommand({ home, args: ['run', '--session', 'last', 'Go on'] })).toMatchObject({
    code: 0,
    stdout: 'Here I am again.\n',
  })
})
