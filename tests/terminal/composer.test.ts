import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { say, shownTo } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'

/** One red point. */
const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==',
  'base64',
)

async function said(home: Awaited<ReturnType<typeof testHome>>, number: number): Promise<string | undefined> {
  return shownTo(await home.provider.request(number)).at(-1)
}

test('`@` completes the names of files', async () => {
  const home = await testHome()
  await mkdir(join(home.cwd, 'source'))
  await writeFile(join(home.cwd, 'source', 'particular.ts'), 'export {}\n')
  home.provider.script(say('Read.'))
  const chat = await openChat({ home })
  chat.type('Look at @partic')
  await chat.waitFor('particular.ts')
  chat.press('tab')
  await chat.waitFor('@source/particular.ts')
})

test('a message has as many lines as one likes, by Alt-Enter, by a backslash, or pasted', async () => {
  const home = await testHome()
  home.provider.script(say('Three lines.'))
  const chat = await openChat({ home })
  chat.type('one')
  chat.press('alt-enter')
  chat.type('two\\')
  chat.press('enter')
  chat.paste('three\nfour')
  await chat.waitFor('four')
  chat.press('enter')
  await chat.waitFor('Three lines.')
  expect(await said(home, 1)).toBe('user: one\ntwo\nthree\nfour')
})

test('what was typed before comes back with the arrow, also in another session', async () => {
  const home = await testHome()
  home.provider.script(say('Yes.'), say('Again.'))
  const chat = await openChat({ home })
  send(chat, 'A question worth repeating')
  await chat.waitFor('Yes.')
  chat.press('ctrl-c', 'ctrl-c')
  await chat.exit
  const next = await openChat({ home })
  next.press('up')
  await next.waitFor('A question worth repeating')
  next.press('enter')
  await next.waitFor('Again.')
  expect(await said(home, 2)).toBe('user: A question worth repeating')
})

test('slash commands are completed, and an unknown one is answered with the nearest', async () => {
  const home = await testHome()
  const chat = await openChat({ home })
  chat.type('/th')
  await chat.waitFor('choose how long the model thinks')
  chat.press('ctrl-c')
  await chat.waitFor('Enter sends')
  send(chat, '/modle')
  await chat.waitFor('There is no command /modle.')
  expect(chat.screen()).toContain('/model')
})

test('Ctrl-G takes the text into the editor of the user and back', async () => {
  const home = await testHome()
  const editor = join(home.home, 'editor')
  await writeFile(editor, '#!/bin/sh\necho " and edited" >> "$1"\n')
  await chmod(editor, 0o755)
  home.provider.script(say('Seen.'))
  const chat = await openChat({ home, env: { EDITOR: editor } })
  chat.type('Written')
  chat.press('ctrl-g')
  await chat.waitFor('and edited')
  chat.press('enter')
  await chat.waitFor('Seen.')
  expect(await said(home, 1)).toMatch(/^user: Written\s+and edited$/)
})

test('vim keys: words are deleted and inserted', async () => {
  const home = await testHome()
  home.provider.script(say('Seen.'))
  const chat = await openChat({ home, args: ['--vim'] })
  chat.type('one two three')
  chat.press('escape')
  chat.type('0dwA four')
  await chat.waitFor('two three four')
  chat.press('enter')
  await chat.waitFor('Seen.')
  expect(await said(home, 1)).toBe('user: two three four')
})

test('an image is attached by its path', async () => {
  const home = await testHome()
  await writeFile(join(home.cwd, 'point.png'), png)
  home.provider.script(say('Red.'))
  const chat = await openChat({ home })
  chat.paste(join(home.cwd, 'point.png'))
  await chat.waitFor(/image|point\.png/i)
  send(chat, ' What colour is it?')
  await chat.waitFor('Red.')
  expect(JSON.stringify((await home.provider.request(1)).body)).toContain(png.toString('base64'))
})

test('vim changes a word by its text object, and says how much is selected', async () => {
  const home = await testHome()
  const chat = await openChat({ home, args: ['--vim'] })
  chat.type('one two three')
  await chat.waitFor('one two three')
  chat.press('escape')
  await chat.waitFor('NORMAL')
  chat.type('ggwciwfour')
  await chat.waitFor('one four three')
  chat.press('escape')
  await chat.waitFor('NORMAL')
  chat.type('0vt ')
  await chat.waitFor('VISUAL: 3 characters')
  chat.press('escape')
  await chat.waitFor('NORMAL')
  chat.type('ve')
  await chat.waitFor('VISUAL:')
  chat.type('d')
  await chat.waitFor('on three')
})
