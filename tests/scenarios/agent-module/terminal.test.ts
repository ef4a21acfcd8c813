import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { call, say, sayAndWait, shownTo } from '../../peers/answers.ts'
import { verifies } from '../../support/verifies.ts'
import { openChat, send, testHome } from '../../terminal/chat.ts'

const auto = { permissions: { mode: 'auto' } }

verifies(
  ['agent-module/screen text', 'agent-module/screen complete', 'agent-module/agent consumers'],
  'what is typed goes to the agent; its text is drawn as it comes, and its end is seen',
  async () => {
    const home = await testHome()
    home.provider.script(sayAndWait(['The first words '], 'rest', ['and the last.']))
    const chat = await openChat({ home })
    send(chat, 'Tell me')
    await chat.waitFor('The first words')
    expect(chat.screen()).toContain('Esc stops')
    expect(chat.screen()).not.toContain('and the last.')
    home.provider.release('rest')
    await chat.waitFor('The first words and the last.')
    await chat.waitFor('Enter sends')
    expect(shownTo(await home.provider.request(1))).toEqual(['user: Tell me'])
  },
)

verifies(
  ['agent-module/screen tool-call', 'agent-module/screen tool-result', 'agent-module/events panel'],
  'a call is on the screen while it runs, with how long, and then its result',
  async () => {
    const home = await testHome({ settings: auto })
    const command = 'until [ -e go-on ]; do sleep 0.05; done; echo the result'
    home.provider.script(call({ id: 'call_1', name: 'bash', input: { command } }), say('Well.'))
    const chat = await openChat({ home })
    send(chat, 'Run it')
    await chat.waitFor(/Running bash .* · [1-9]\d* s/)
    expect(chat.screen()).not.toMatch(/^\s+the result$/m)
    await writeFile(join(home.cwd, 'go-on'), '')
    await chat.waitFor(/^\s+the result$/m)
    await chat.waitFor('Well.')
  },
)

verifies(['agent-module/screen error'], 'an error is shown with its reason, and the chat goes on', async () => {
  const home = await testHome()
  home.provider.script(
    { type: 'failure', error: 'invalid-request', message: 'The moon is in the way.' },
    say('Better.'),
  )
  const chat = await openChat({ home })
  send(chat, 'Go')
  await chat.waitFor('The moon is in the way.')
  await chat.waitFor('Enter sends')
  expect(chat.screen()).toContain('The run has ended.')
  send(chat, 'Again')
  await chat.waitFor('Better.')
})

verifies(
  ['agent-session/10 keys'],
  'Ctrl-C while a tool runs stops it, and what is typed meanwhile steers the run',
  async () => {
    const home = await testHome({ settings: auto })
    const command = 'until [ -e go-on ]; do sleep 0.05; done'
    home.provider.script(
      call({ id: 'call_1', name: 'bash', input: { command } }),
      say('As you like.'),
      call({ id: 'call_2', name: 'bash', input: { command: 'sleep 60' } }),
    )
    const chat = await openChat({ home })
    send(chat, 'Begin')
    await chat.waitFor('Running bash')
    chat.type('Rather not')
    chat.press('alt-enter')
    await writeFile(join(home.cwd, 'go-on'), '')
    await chat.waitFor('As you like.')
    expect(shownTo(await home.provider.request(2)).at(-1)).toBe('user: Rather not')
    await chat.waitFor('Enter sends')
    send(chat, 'Once more')
    await chat.waitFor('Running bash sleep 60')
    chat.press('ctrl-c')
    await chat.waitFor('Enter sends')
  },
)
