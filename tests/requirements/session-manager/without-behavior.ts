import type { LinesWithoutBehavior } from '../requirement.ts'

/** Lines of session-manager.md that describe no behavior. */
export const withoutBehavior: LinesWithoutBehavior = {
  '1. Overview': { 'document summary': ['7eb6e05c'] },
  '4.1. Core Types': { 'code syntax': ['2b4a401a', 'd0daecb5', 'c894b672', 'dcfb35e5'] },
  '4.3. Content Types (Message Components)': { 'code syntax': ['dcfb35e5'] },
  '5.2. Provider Mappings': { 'table header': ['eae4d951'] },
  '6.1. Key Methods': { 'section divider': ['10b7db52', '11df4d72', 'd7407eaa', 'c613e3bb'] },
  '8.2. Compaction Safety Rules': { 'opening line': ['d2d695a1'] },
  '11.2. Relationship': { 'table header': ['c89a47c5'] },
  '13. Go Usage Example': { 'code syntax': ['d0daecb5', '51284385', '4a829123', '2ce5a984', 'aa7215d4', 'e3bed7b2'] },
}
