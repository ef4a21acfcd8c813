// Makes the files of the current folder like those of a list. Run by the agents of `run.ts`.
import { readFileSync } from 'node:fs'
import { writeFiles, type File } from './files.ts'

const [list = ''] = process.argv.slice(2)
const wanted = new Map(JSON.parse(readFileSync(list, 'utf8')) as [string, File][])
writeFiles('.', wanted)
