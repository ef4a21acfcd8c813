import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

/** All files and packages that a file imports by value, directly or through others. What is imported on demand does not count. */
function loadedBy(entry: string): { files: Set<string>; packages: Set<string> } {
  const files = new Set([entry])
  const packages = new Set<string>()
  for (const file of files) {
    const source = readFileSync(file, 'utf8')
    for (const [, specifier = ''] of source.matchAll(/^(?:import|export) (?!type\b)[^'"]*?from '([^']+)'/gm)) {
      if (specifier.startsWith('.')) files.add(join(dirname(file), specifier))
      else if (!specifier.startsWith('node:')) packages.add(specifier)
    }
  }
  return { files, packages }
}

test('the first frame waits for neither Markdown, diffs and syntax colors nor the protocol', () => {
  const { files, packages } = loadedBy(join(import.meta.dirname, 'run-chat.ts'))
  expect(files.size).toBeGreaterThan(20)
  expect([...packages].toSorted()).toEqual([
    '@earendil-works/pi-tui',
    '@tapetree/agent/util/edit-distance',
    '@tapetree/session/screen',
    '@tapetree/session/util/replace-file',
  ])
  const late = [...files].filter((file) => /render-item|diff-view|markdown-lines|highlight|machine-commands/.test(file))
  expect(late).toEqual([])
})
