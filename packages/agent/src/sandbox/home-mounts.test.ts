import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { bwrapArguments, type BoxNetwork } from './bwrap-arguments.ts'
import { homeMounts } from './home-mounts.ts'

let folder: string

beforeEach(() => void (folder = realpathSync(mkdtempSync(join(tmpdir(), 'tapetree-home-')))))
afterEach(() => rmSync(folder, { recursive: true }))

test('with bubblewrap 0.11 the home folder is an overlay in which visible folders stay read-only', async () => {
  const [home, keep] = [join(folder, 'home'), join(folder, 'keep')]
  for (const name of ['.config', 'Documents']) mkdirSync(join(home, name), { recursive: true })
  writeFileSync(join(home, 'note'), '')
  for (const version of ['0.11.0', '0.12', '1.0.2']) {
    expect(await homeMounts({ home, keep, version })).toEqual({
      caches: [],
      overlay: [
        ...['--overlay-src', home, '--overlay', `${keep}/home-written`, `${keep}/home-work`, home],
        ...['--ro-bind', `${home}/Documents`, `${home}/Documents`],
      ],
    })
  }
})

test('older versions of bubblewrap have no overlays, and an unknown version counts as old', async () => {
  for (const version of ['0.8.0', '0.10.9', 'unknown'])
    expect(await homeMounts({ home: folder, keep: folder, version })).toEqual({})
})

test('secrets are hidden after the overlay is mounted, not before', () => {
  const policy = {
    ...{ writable: [], scratch: '/s', caches: [], pinned: [], readOnly: [], hiddenInside: [] },
    hidden: [{ path: '/home/me/.ssh', isFolder: true }],
    overlay: ['--overlay-src', '/home/me', '--overlay', '/u', '/w', '/home/me'],
  }
  const argv = bwrapArguments('bwrap', policy, { cwd: '/w' })
  expect(argv.indexOf('--overlay')).toBeGreaterThan(argv.indexOf('--ro-bind'))
  expect(argv.indexOf('/home/me/.ssh')).toBeGreaterThan(argv.indexOf('--overlay'))
})

test('a box has a network of its own, the one that was entered, or that of the machine with its name servers', () => {
  const policy = { writable: [], scratch: '/s', caches: [], hidden: [], pinned: [], readOnly: [], hiddenInside: [] }
  const boxWith = (network?: BoxNetwork): string =>
    bwrapArguments('bwrap', policy, { cwd: '/w', ...(network && { network }) }).join(' ')
  expect(boxWith()).toContain('--unshare-net')
  expect(boxWith({ type: 'entered' })).not.toContain('--unshare-net')
  const shared = boxWith({ type: 'machine', nameServers: '/run/resolve/conf' })
  expect(shared).not.toContain('--unshare-net')
  expect(shared).toContain('--tmpfs /run --ro-bind /run/resolve/conf /run/resolve/conf')
})
