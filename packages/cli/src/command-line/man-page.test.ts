import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { commands } from '../cli.ts'
import { manPage } from './man-page.ts'

test('the manual has every command, option and exit code, and roff reports no problem', async () => {
  const page = manPage(commands)
  // A plain hyphen would become a typographic one.
  for (const { path } of commands) {
    expect(page).toContain(`tapetree ${path.join(' ').replaceAll('-', '\\-')}`.trim())
  }
  expect(page).toContain('\\-\\-model')
  const folder = await mkdtemp(join(tmpdir(), 'tapetree-man-'))
  try {
    await writeFile(join(folder, 'tapetree.1'), page)
    const groff = promisify(execFile)('groff', ['-man', '-Tutf8', '-ww', '-z', join(folder, 'tapetree.1')])
    const result = await groff.catch((error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? undefined : Promise.reject(error),
    )
    // Without groff, only the text above is checked.
    expect(result?.stderr ?? '').toBe('')
  } finally {
    await rm(folder, { recursive: true })
  }
})
