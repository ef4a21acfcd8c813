import { execFileSync } from 'node:child_process'
import { symlink } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { TestFolder } from '../testing/test-folder.ts'
import { inspectProject, type Project } from './inspect-project.ts'
import { moduleLimits } from './project-modules.ts'

const settings = JSON.stringify({ extensions: ['ext.mjs'] })

function pathsOf({ modules }: Project): string[] {
  return modules.map(({ path }) => path).sort()
}

test('every form of a static import is followed, also cyclic ones', async () => {
  await using folder = await TestFolder.make({
    '.tapetree/settings.json': settings,
    '.tapetree/ext.mjs': `import a from "../a.mjs"
      import '../b.mjs'
      export * from '../c.mjs?v=1'
      import data from '../d%20e.json' with { type: 'json' }
      const lazy = () => import('../f.mjs')
      import type { T } from '../types.ts'`,
    'a.mjs': `import './nowhere.mjs'; import './.tapetree/ext.mjs'`,
    'b.mjs': `const c = require('./g'); require('./h')`,
    'c.mjs': '',
    'd e.json': '{}',
    'f.mjs': '',
    'g.js': '',
    'h/index.js': `import './../a.mjs'`,
    'types.ts': '',
    'other.mjs': '',
  })
  expect(pathsOf(await inspectProject(folder.path))).toEqual([
    'a.mjs',
    'b.mjs',
    'c.mjs',
    'd e.json',
    'f.mjs',
    'g.js',
    'h/index.js',
    'types.ts',
  ])
})

test('the files in the exports of a package are followed, under any condition', async () => {
  const manifest = {
    exports: {
      '.': { types: './index.d.ts', import: './esm.mjs', require: './cjs.cjs' },
      './deep/*': './lib/*.js',
      './other': './other.js',
    },
  }
  const files = ['index.d.ts', 'esm.mjs', 'cjs.cjs', 'lib/x.js', 'lib/y.js', 'other.js']
  await using folder = await TestFolder.make({
    '.tapetree/settings.json': settings,
    '.tapetree/ext.mjs': `import 'pkg'; import 'pkg/deep/x'; import '@scope/main'; import 'elsewhere'; import 'node:fs'`,
    'node_modules/pkg/package.json': JSON.stringify(manifest),
    ...Object.fromEntries(files.map((name) => [`node_modules/pkg/${name}`, ''])),
    'node_modules/@scope/main/package.json': '{"main":"./start"}',
    'node_modules/@scope/main/start.js': '',
  })
  const project = await inspectProject(folder.path)
  expect(pathsOf(project)).toEqual([
    'node_modules/@scope/main/start.js',
    'node_modules/pkg/cjs.cjs',
    'node_modules/pkg/esm.mjs',
    'node_modules/pkg/lib/x.js',
  ])
  expect(project.packages.toSorted()).toEqual(['@scope/main', 'pkg'])
  expect(project.uncovered).toEqual(['.tapetree/ext.mjs imports elsewhere from outside of the repository'])
})

test('pipes, links out of the repository and broken packages do no harm', async () => {
  await using folder = await TestFolder.make({
    'repository/.tapetree/settings.json': settings,
    'repository/.tapetree/ext.mjs': `import '../pipe.mjs'; import '../out.mjs'; import 'broken'; import 'piped'; import '/x.json'`,
    'repository/node_modules/broken/package.json': '{"exports":{".":',
    'repository/node_modules/piped/index.js': '',
    'outside.mjs': '',
  })
  execFileSync('mkfifo', [folder.at('repository/pipe.mjs'), folder.at('repository/node_modules/piped/package.json')])
  await symlink('../outside.mjs', folder.at('repository/out.mjs'))
  const project = await inspectProject(folder.at('repository'))
  expect(pathsOf(project)).toEqual([])
  expect(project.leftOut.map(({ path }) => path)).toEqual(['pipe.mjs'])
  expect(project.uncovered).toEqual([
    '.tapetree/ext.mjs imports piped from outside of the repository',
    '.tapetree/ext.mjs imports /x.json from outside of the repository',
  ])
})

test('modules beyond the limit are left out', async () => {
  const chain = Array.from({ length: moduleLimits.files + 1 }, (_, index) => [
    `m/${index}.mjs`,
    `import './${index + 1}.mjs'`,
  ])
  await using folder = await TestFolder.make({
    '.tapetree/settings.json': settings,
    '.tapetree/ext.mjs': `import '../m/0.mjs'`,
    ...(Object.fromEntries(chain) as Record<string, string>),
  })
  const project = await inspectProject(folder.path)
  expect(project.modules).toHaveLength(moduleLimits.files)
  expect(project.leftOut).toEqual([
    {
      path: `m/${moduleLimits.files}.mjs`,
      reason: 'There are too many modules. Extensions that import it do not load.',
    },
  ])
})
