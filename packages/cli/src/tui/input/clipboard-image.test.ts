import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { clipboardImage } from './clipboard-image.ts'

const maxBytes = 1000

/** A folder with these programs, as shell scripts. */
async function pathWith(programs: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-clipboard-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [name, script] of Object.entries(programs)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(folder, name), 0o755)
  }
  return folder
}

test('on macOS, pngpaste is asked, and osascript if it is not there', async () => {
  const mac = { platform: 'darwin', maxBytes } as const
  const both = await pathWith({ pngpaste: 'printf image', osascript: 'exit 9' })
  const read = await clipboardImage({ ...mac, env: { PATH: both } })
  expect(read).toEqual({ bytes: Buffer.from('image'), mediaType: 'image/png' })
  const script = await pathWith({ osascript: "printf '«data PNGf696D616765»\\n'" })
  expect((await clipboardImage({ ...mac, env: { PATH: script } }))?.bytes.toString()).toBe('image')
  const text = await pathWith({ pngpaste: 'exit 1' })
  expect(await clipboardImage({ ...mac, env: { PATH: text } })).toBeUndefined()
})

test('an image that is too large is refused', async () => {
  const path = await pathWith({
    'wl-paste': 'if [ "$1" = --list-types ]; then echo image/png; else printf %2000d 1; fi',
  })
  const env = { PATH: `${path}:${process.env['PATH']}`, WAYLAND_DISPLAY: 'w' }
  await expect(clipboardImage({ env, platform: 'linux', maxBytes })).rejects.toThrow('too large; the limit')
})
