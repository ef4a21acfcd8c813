import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readdir, rename, symlink, unlink } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { describe, expect, test } from 'vitest'
import { TestFolder } from '../../testing/test-folder.ts'
import { callTool, testContext } from '../../testing/tool-context.ts'
import { editTool } from '../builtin/edit.ts'
import { grepTool } from '../builtin/grep.ts'
import { lsTool } from '../builtin/ls.ts'
import { readTool } from '../builtin/read.ts'
import type { Tool } from '../tool.ts'
import { writeTool } from '../builtin/write.ts'
import { HeldFolder } from './held-folder.ts'
import { openRegularFile } from './confirm-path.ts'

/**
 * Another process swaps a folder for a link to another one and back, as fast as possible, while tools work in it. A
 * call is judged while it is the folder, so nothing outside may be read or written, whenever the swap happens.
 */
const swapper = `
  const { renameSync, symlinkSync, unlinkSync } = require('node:fs')
  const [folder, aside, outside, link] = process.argv.slice(1)
  let swaps = 0
  let moved = 0
  let isOver = false
  process.stdin.on('end', () => { isOver = true }).resume()
  // While the folder is aside, a write may create a new one at its path: that is not an escape, and it is moved out of
  // the way.
  function force(step) {
    for (;;) {
      try { return step() } catch (error) {
        if (!['EISDIR', 'ENOTEMPTY', 'EEXIST'].includes(error.code)) throw error
        renameSync(folder, aside + '-' + (moved += 1))
      }
    }
  }
  function swap() {
    for (let round = 0; round < 50; round += 1) {
      renameSync(folder, aside)
      force(() => symlinkSync(outside, folder))
      unlinkSync(folder)
      force(() => renameSync(aside, folder))
      symlinkSync(outside, link)
      renameSync(folder, aside)
      force(() => renameSync(link, folder))
      unlinkSync(folder)
      force(() => renameSync(aside, folder))
      swaps += 2
    }
    if (isOver) console.log(swaps)
    else setImmediate(swap)
  }
  console.log('ready')
  swap()
`

class Swapping implements AsyncDisposable {
  readonly folder: TestFolder
  readonly #child
  readonly #exited
  readonly #lines

  private constructor(folder: TestFolder) {
    this.folder = folder
    const places = ['inside', 'aside', 'outside', 'link'].map((name) => folder.at(name))
    this.#child = spawn(process.execPath, ['-e', swapper, ...places], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#exited = once(this.#child, 'exit')
    this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]()
  }

  static async start(): Promise<Swapping> {
    const folder = await TestFolder.make({ 'inside/a': 'mine\n', 'outside/a': 'secret\n' })
    const swapping = new Swapping(folder)
    await swapping.#lines.next()
    return swapping
  }

  /** How often it was swapped. */
  async stop(): Promise<number> {
    this.#child.stdin.end()
    const { value } = await this.#lines.next()
    return Number(value)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
    await this.folder[Symbol.asyncDispose]()
  }
}

/** Calls tools for two seconds, each judged when the path led inside; returns the output of those that ran. */
async function callOverAndOver(calls: (round: number) => [Tool, Record<string, unknown>][], folder: TestFolder) {
  const said: string[] = []
  const until = Date.now() + 2000
  for (let round = 0; Date.now() < until; round += 1) {
    for (const [tool, input] of calls(round)) {
      const context = testContext({ cwd: folder.path })
      const checked = tool.check(input, context)
      if (typeof checked === 'string') throw new Error(checked)
      const paths = checked.access.flatMap((access) => ('path' in access ? [access.path] : []))
      if (!paths.every((path) => path.startsWith(folder.at('inside')))) continue
      said.push(JSON.stringify(await checked.run(context)))
    }
  }
  return said
}

// On other systems than Linux a short race remains, which the comment on HeldFolder describes.
describe.skipIf(process.platform !== 'linux')('while a folder is swapped for a link and back', () => {
  test('nothing outside is written', async () => {
    await using swapping = await Swapping.start()
    const { folder } = swapping
    const said = await callOverAndOver(
      (round) => [
        [writeTool, { path: 'inside/new', content: `${round}\n` }],
        [writeTool, { path: `inside/deep/${round}`, content: `${round}\n` }],
        [editTool, { path: 'inside/a', oldText: 'mine', newText: 'mine again' }],
      ],
      folder,
    )
    expect(await swapping.stop()).toBeGreaterThanOrEqual(100)
    expect(said.length).toBeGreaterThan(0)
    expect(said.filter((text) => text.includes('secret'))).toEqual([])
    expect(await readdir(folder.at('outside'))).toEqual(['a'])
    expect(await folder.read('outside/a')).toBe('secret\n')
    expect((await readdir(folder.path, { recursive: true })).filter((name) => name.endsWith('.tmp'))).toEqual([])
  })

  test('nothing outside is read', async () => {
    await using swapping = await Swapping.start()
    const { folder } = swapping
    await folder.write('outside/other', 'secret\n')
    const said = await callOverAndOver(
      () => [
        [readTool, { path: 'inside/a' }],
        [lsTool, { path: 'inside' }],
        [grepTool, { pattern: '.', path: 'inside/a' }],
        [grepTool, { pattern: '.', path: 'inside' }],
      ],
      folder,
    )
    expect(await swapping.stop()).toBeGreaterThanOrEqual(100)
    expect(said.length).toBeGreaterThan(0)
    expect(said.filter((text) => /secret|other/.test(text))).toEqual([])
  })
})

test('a folder that was replaced by a link is not entered', async () => {
  await using folder = await TestFolder.make({ 'real/sub/a': '' })
  await symlink('real', folder.at('link'))
  await expect(HeldFolder.open(folder.at('link'))).rejects.toThrow(/ENOTDIR|ELOOP/)
  await expect(HeldFolder.open(folder.at('link/sub'))).rejects.toThrow('has a different target')
  await expect(HeldFolder.make(folder.at('link/sub/new'))).rejects.toThrow('has a different target')
  await expect(openRegularFile(folder.at('link/sub/a'))).rejects.toThrow('has a different target')
  expect(await readdir(folder.at('real/sub'))).toEqual(['a'])
})

test('an open folder stays the same folder under another name', async () => {
  await using folder = await TestFolder.make({ 'a/x': '' })
  await using held = await HeldFolder.open(folder.at('a'))
  await rename(folder.at('a'), folder.at('b'))
  await mkdir(folder.at('a'))
  await expect(held.confirm()).rejects.toThrow('has a different target')
})

test('a link that is changed while its target is written is detected before anything changes', async () => {
  await using folder = await TestFolder.make({ 'one/a': 'old\n', 'two/a': 'old\n' })
  await symlink('one', folder.at('link'))
  const context = testContext({
    cwd: folder.path,
    putBlob: async () => {
      await unlink(folder.at('link'))
      await symlink('two', folder.at('link'))
      return { sha256: '', size: 0 }
    },
  })
  expect(await callTool(writeTool, { path: 'link/a', content: 'new\n' }, context)).toMatchObject({ isError: true })
  expect([await folder.read('one/a'), await folder.read('two/a')]).toEqual(['old\n', 'old\n'])
  expect(await readdir(folder.at('one'))).toEqual(['a'])
})
