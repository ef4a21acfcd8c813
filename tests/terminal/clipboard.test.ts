import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { FakeHome } from '../../packages/cli/src/testing/fake-home.ts'
import { say } from '../peers/answers.ts'
import { openChat, send, testHome } from './chat.ts'

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** A home whose path begins with a program of this name. */
async function homeWith(program: string, script: string): Promise<{ home: FakeHome; env: Record<string, string> }> {
  const home = await testHome()
  const folder = join(home.home, 'bin')
  await mkdir(folder)
  await writeFile(join(folder, program), `#!/bin/sh\n${script}\n`)
  await chmod(join(folder, program), 0o755)
  return { home, env: { PATH: `${folder}:${home.env['PATH'] ?? ''}` } }
}

const programs = {
  'wl-paste': {
    display: { WAYLAND_DISPLAY: 'wayland-1' },
    script: `if [ "$1" = --list-types ]; then printf 'text/html\\nimage/png\\n'; exit; fi
[ "$*" = '--no-newline --type image/png' ] && echo ${pixel} | base64 -d`,
  },
  xclip: {
    display: { DISPLAY: ':1' },
    script: `case "$*" in
  *TARGETS*) printf 'TARGETS\\nimage/png\\n';;
  '-selection clipboard -target image/png -out') echo ${pixel} | base64 -d;;
  *) exit 1;;
esac`,
  },
} as const

test.for(Object.entries(programs))(
  'Ctrl-V inserts the image in the clipboard, with %s',
  async ([name, { display, script }]) => {
    const { home, env } = await homeWith(name, script)
    home.provider.script(say('A pixel.'))
    const chat = await openChat({ home, env: { ...env, ...display } })
    chat.type('Look at ')
    chat.press('ctrl-v')
    await chat.waitFor('Look at [image 1: from the clipboard]')
    send(chat, 'now')
    await chat.waitFor('A pixel.')
    const { body } = await home.provider.request(1)
    expect(JSON.stringify(body['messages'])).toContain(pixel)
    expect(JSON.stringify(body['messages'])).toContain('Look at [image 1: from the clipboard] now')
  },
)

test('without an image, a program or a display, Ctrl-V says what is missing', async () => {
  const { home, env } = await homeWith('wl-paste', 'echo "No selection" >&2; exit 1')
  const empty = await openChat({ home, env: { ...env, WAYLAND_DISPLAY: 'wayland-1' } })
  empty.press('ctrl-v')
  await empty.waitFor('There is no image in the clipboard.')
  const none = await openChat({ home, env: { DISPLAY: ':1', PATH: '/var/empty' } })
  none.press('ctrl-v')
  await none.waitFor('To paste images, install xclip.')
  const plain = await openChat({ home })
  plain.press('ctrl-v')
  await plain.waitFor('There is no graphical session here')
})
