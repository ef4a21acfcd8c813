import type { Requirement } from '../requirement.ts'

/** Sections 1 to 5: goals, storage format and data models. */
export const format = [
  {
    id: 'session-manager/1 history-manager',
    says: 'The session layer keeps an append-only history with branches and compaction, safe for concurrent use.',
    lines: { '1. Overview': ['0f680195'] },
  },
  {
    id: 'session-manager/2 append-only-storage',
    says: 'Sessions are append-only JSONL, so a crash cannot destroy the history.',
    lines: { Goals: ['a2d8b9d0'] },
  },
  {
    id: 'session-manager/2 tree-structure',
    says: 'Entries form a tree through `id` and `parent_id`; branching copies nothing.',
    lines: { Goals: ['cd0757d4'] },
  },
  {
    id: 'session-manager/2 context-compaction',
    says: 'Compaction replaces old context with a summary and names the first kept message.',
    lines: { Goals: ['8d6d08dd'] },
  },
  {
    id: 'session-manager/2 checkpointing',
    says: 'A branch can start with a summary of the abandoned path.',
    lines: { Goals: ['8efda411'] },
  },
  {
    id: 'session-manager/2 concurrency',
    says: 'Concurrent callers can use a session safely.',
    lines: { Goals: ['7567c734'] },
    settled:
      'Callers in one process append concurrently, and each append resolves when it is durable. A kernel lock excludes other processes.',
  },
  {
    id: 'session-manager/2 strict-typing',
    says: 'Entries have strict types.',
    lines: { Goals: ['51ed40c2'] },
    settled: 'In TypeScript an entry is a union with a `type` tag.',
  },
  {
    id: 'session-manager/2 no-legacy-formats',
    says: 'Older foreign formats are not converted.',
    lines: { 'Non-Goals': ['12f8eb72'] },
    settled: 'Only the flat payloads of section 13, `thinking_level_change` and the role `toolResult` are read.',
  },
  {
    id: 'session-manager/2 no-ui',
    says: 'The session layer does not format output for screens.',
    lines: { 'Non-Goals': ['58dbf189'] },
  },
  {
    id: 'session-manager/3 jsonl',
    says: 'The log has the JSONL format.',
    lines: { '3. Storage Format': ['35e6e4dd'] },
  },
  {
    id: 'session-manager/3 one-line-one-event',
    says: 'Each line is one event.',
    lines: { '3. Storage Format': ['cb7f09be'] },
  },
  {
    id: 'session-manager/3 header-first',
    says: 'The first line is the header with metadata.',
    lines: { 'File Structure': ['6ad9b047'] },
  },
  {
    id: 'session-manager/3 body-ordered',
    says: 'The other lines are events in order.',
    lines: { 'File Structure': ['8647da14'] },
  },
  {
    id: 'session-manager/3 base-structure',
    says: 'Entries have a type, an id, a parent id and a timestamp.',
    lines: { 'Entry Types': ['2d666df0', '4a32ae15', 'd9f9c832', 'eb4d9443', '3adaac40'] },
    settled:
      'Ids are sortable UUIDs of version 7. A line also has `seq` first and `crc` last. Records about runs have no `parent_id`.',
  },
  {
    id: 'session-manager/4.1 entry-type',
    says: 'Each entry has one of the known types.',
    lines: { '4.1. Core Types': ['6aa44707', '183bda59'] },
    settled: 'We add `system` and the records about runs.',
  },
  {
    id: 'session-manager/4.1 type-session',
    says: 'The header has the type `session`.',
    lines: { '4.1. Core Types': ['b2731fd7'] },
  },
  {
    id: 'session-manager/4.1 type-message',
    says: 'Messages have the type `message`.',
    lines: { '4.1. Core Types': ['f4d67284'] },
  },
  {
    id: 'session-manager/4.1 type-model-change',
    says: 'Model changes have the type `model_change`.',
    lines: { '4.1. Core Types': ['c549dfa3'] },
  },
  {
    id: 'session-manager/4.1 type-thinking-level',
    says: 'Changes of the thinking level have the type `thinking_level`.',
    lines: { '4.1. Core Types': ['d8ff114e'] },
    settled: '`thinking_level_change` is read as `thinking_level`.',
  },
  {
    id: 'session-manager/4.1 type-label',
    says: 'Labels have the type `label`.',
    lines: { '4.1. Core Types': ['a248402a'] },
  },
  {
    id: 'session-manager/4.1 type-session-info',
    says: 'Session information has the type `session_info`.',
    lines: { '4.1. Core Types': ['de3be76b'] },
  },
  {
    id: 'session-manager/4.1 type-compaction',
    says: 'Compactions have the type `compaction`.',
    lines: { '4.1. Core Types': ['c96638b7'] },
  },
  {
    id: 'session-manager/4.1 type-branch-summary',
    says: 'Branch summaries have the type `branch_summary`.',
    lines: { '4.1. Core Types': ['34133061'] },
  },
  {
    id: 'session-manager/4.1 type-custom',
    says: 'Extension data has the type `custom`.',
    lines: { '4.1. Core Types': ['e712423d'] },
  },
  {
    id: 'session-manager/4.1 message-role',
    says: 'Each message has one of the known roles.',
    lines: { '4.1. Core Types': ['b3273ecb', 'ec26a1d6'] },
  },
  {
    id: 'session-manager/4.1 role-user',
    says: 'User messages have the role `user`.',
    lines: { '4.1. Core Types': ['92e0c751'] },
  },
  {
    id: 'session-manager/4.1 role-assistant',
    says: 'Model messages have the role `assistant`.',
    lines: { '4.1. Core Types': ['5ad1ddaf'] },
  },
  {
    id: 'session-manager/4.1 role-tool',
    says: 'Tool results have the role `tool`.',
    lines: { '4.1. Core Types': ['fff9ca1c'] },
    settled: 'The role `toolResult` is read as `tool`.',
  },
  {
    id: 'session-manager/4.1 role-bash-execution',
    says: 'Commands of the user have the role `bashExecution`.',
    lines: { '4.1. Core Types': ['abd82170'] },
    settled: 'The payload is `bash_execution`, with `exclude_from_context`.',
  },
  {
    id: 'session-manager/4.1 role-custom',
    says: 'Messages from extensions have the role `custom`.',
    lines: { '4.1. Core Types': ['cea67755'] },
    settled: 'The model receives a `message` with the role `custom`, but not an entry of the type `custom`.',
  },
  {
    id: 'session-manager/4.1 role-branch-summary',
    says: 'Branch summaries appear with the role `branchSummary`.',
    lines: { '4.1. Core Types': ['058fc777'] },
  },
  {
    id: 'session-manager/4.1 role-compaction-summary',
    says: 'Compaction summaries appear with the role `compactionSummary`.',
    lines: { '4.1. Core Types': ['af9685b1'] },
  },
  {
    id: 'session-manager/4.1 header',
    says: 'The header is the first line.',
    lines: { '4.1. Core Types': ['ef060fc4', 'db1ab142'] },
  },
  { id: 'session-manager/4.1 header-type', says: 'The header has a type.', lines: { '4.1. Core Types': ['026aedb0'] } },
  {
    id: 'session-manager/4.1 header-id',
    says: 'The header has the session id.',
    lines: { '4.1. Core Types': ['ce833ec6'] },
  },
  {
    id: 'session-manager/4.1 header-version',
    says: 'The header has the format version.',
    lines: { '4.1. Core Types': ['cbd83424'] },
  },
  {
    id: 'session-manager/4.1 header-parent-session',
    says: 'The header can name a parent session.',
    lines: { '4.1. Core Types': ['8a3c9a66'] },
    settled: 'A copy also names its source entry in `parent_entry`.',
  },
  {
    id: 'session-manager/4.1 header-timestamp',
    says: 'The header has the creation time.',
    lines: { '4.1. Core Types': ['80104de8'] },
  },
  {
    id: 'session-manager/4.1 entry-tagged-union',
    says: 'An entry is a tagged union of all line types.',
    lines: { '4.1. Core Types': ['aae91c53', '57ff726b'] },
    settled: 'The reader keeps lines of unknown types unchanged.',
  },
  {
    id: 'session-manager/4.1 entry-type-member',
    says: 'An entry has a type.',
    lines: { '4.1. Core Types': ['d0f43877'] },
  },
  {
    id: 'session-manager/4.1 entry-id',
    says: 'An entry has an id.',
    lines: { '4.1. Core Types': ['ce833ec6'] },
    settled: 'A UUID of version 7, opaque to readers.',
  },
  {
    id: 'session-manager/4.1 entry-parent-id',
    says: 'An entry has a parent id, which is null for a root.',
    lines: { '4.1. Core Types': ['7ecc7a1c'] },
  },
  {
    id: 'session-manager/4.1 entry-timestamp',
    says: 'An entry has a timestamp.',
    lines: { '4.1. Core Types': ['338d1747'] },
  },
  {
    id: 'session-manager/4.1 one-payload',
    says: 'An entry has exactly one payload.',
    lines: { '4.1. Core Types': ['7a550f2c'] },
  },
  {
    id: 'session-manager/4.1 payload-message',
    says: 'The payload of a message is in `message`.',
    lines: { '4.1. Core Types': ['ea71d9ed'] },
  },
  {
    id: 'session-manager/4.1 payload-model-change',
    says: 'The payload of a model change is in `model_change`.',
    lines: { '4.1. Core Types': ['301a3992'] },
  },
  {
    id: 'session-manager/4.1 payload-thinking-level',
    says: 'The payload of a thinking level is in `thinking_level`.',
    lines: { '4.1. Core Types': ['c4d7e49a'] },
  },
  {
    id: 'session-manager/4.1 payload-label',
    says: 'The payload of a label is in `label`.',
    lines: { '4.1. Core Types': ['2921ee4a'] },
  },
  {
    id: 'session-manager/4.1 payload-session-info',
    says: 'The payload of session information is in `session_info`.',
    lines: { '4.1. Core Types': ['86babb1f'] },
  },
  {
    id: 'session-manager/4.1 payload-compaction',
    says: 'The payload of a compaction is in `compaction`.',
    lines: { '4.1. Core Types': ['480e7610'] },
  },
  {
    id: 'session-manager/4.1 payload-branch-summary',
    says: 'The payload of a branch summary is in `branch_summary`.',
    lines: { '4.1. Core Types': ['66f48054'] },
  },
  {
    id: 'session-manager/4.1 payload-custom',
    says: 'The payload of extension data is in `custom`.',
    lines: { '4.1. Core Types': ['ae2308fa'] },
  },
  {
    id: 'session-manager/4.2 message-role',
    says: 'A message has a role.',
    lines: { '4.2. Payload Definitions': ['63e25868', 'e32e851c'] },
  },
  {
    id: 'session-manager/4.2 message-content',
    says: 'A message has a list of content blocks.',
    lines: { '4.2. Payload Definitions': ['cd1cf61c'] },
  },
  {
    id: 'session-manager/4.2 message-model',
    says: 'A message can name its model.',
    lines: { '4.2. Payload Definitions': ['f7fb1f30'] },
  },
  {
    id: 'session-manager/4.2 model-change-provider',
    says: 'A model change names the provider.',
    lines: { '4.2. Payload Definitions': ['bea80b2f', '77f123b0'] },
  },
  {
    id: 'session-manager/4.2 model-change-model-id',
    says: 'A model change names the model.',
    lines: { '4.2. Payload Definitions': ['b769182c'] },
  },
  {
    id: 'session-manager/4.2 thinking-level',
    says: 'A thinking level is a string.',
    lines: { '4.2. Payload Definitions': ['10733529', '54375f8b'] },
  },
  {
    id: 'session-manager/4.2 label-target-id',
    says: 'A label names its target entry.',
    lines: { '4.2. Payload Definitions': ['380809cf', '262d72ae'] },
  },
  {
    id: 'session-manager/4.2 label-label',
    says: 'A label has text; empty text removes it.',
    lines: { '4.2. Payload Definitions': ['727cdd98'] },
  },
  {
    id: 'session-manager/4.2 session-info-name',
    says: 'Session information has a name.',
    lines: { '4.2. Payload Definitions': ['49b9769d', 'dee309d4'] },
  },
  {
    id: 'session-manager/4.2 compaction-summary',
    says: 'A compaction has a summary.',
    lines: { '4.2. Payload Definitions': ['5f7ba1d0', '05bbe916'] },
  },
  {
    id: 'session-manager/4.2 compaction-first-kept-entry-id',
    says: 'A compaction names the first kept entry.',
    lines: { '4.2. Payload Definitions': ['6de442b1'] },
  },
  {
    id: 'session-manager/4.2 compaction-tokens-before',
    says: 'A compaction has the token count before it.',
    lines: { '4.2. Payload Definitions': ['4bf4d157'] },
  },
  {
    id: 'session-manager/4.2 branch-summary-summary',
    says: 'A branch summary has a text.',
    lines: { '4.2. Payload Definitions': ['a00a62ce', '05bbe916'] },
  },
  {
    id: 'session-manager/4.2 branch-summary-from-id',
    says: 'A branch summary names the abandoned entry.',
    lines: { '4.2. Payload Definitions': ['4fcf4a40'] },
    settled: 'It is the abandoned leaf, or null if the conversation was empty.',
  },
  {
    id: 'session-manager/4.2 custom-type',
    says: 'Extension data has a key.',
    lines: { '4.2. Payload Definitions': ['0f4b0fbc', 'e34a6818'] },
  },
  {
    id: 'session-manager/4.2 custom-data',
    says: 'Extension data has arbitrary members.',
    lines: { '4.2. Payload Definitions': ['0873b7d5'] },
  },
  {
    id: 'session-manager/4.3 content-type',
    says: 'Each content block has one of the known types.',
    lines: { '4.3. Content Types (Message Components)': ['8dee1a2a'] },
    settled: 'We add the type `reasoning`.',
  },
  {
    id: 'session-manager/4.3 type-text',
    says: 'Text blocks have the type `text`.',
    lines: { '4.3. Content Types (Message Components)': ['6ba51eeb'] },
  },
  {
    id: 'session-manager/4.3 type-image',
    says: 'Image blocks have the type `image`.',
    lines: { '4.3. Content Types (Message Components)': ['5da33343'] },
  },
  {
    id: 'session-manager/4.3 type-tool-use',
    says: 'Tool calls have the type `tool_use`.',
    lines: { '4.3. Content Types (Message Components)': ['bd855f2b'] },
  },
  {
    id: 'session-manager/4.3 type-tool-result',
    says: 'Tool results have the type `tool_result`.',
    lines: { '4.3. Content Types (Message Components)': ['a920da8d'] },
  },
  {
    id: 'session-manager/4.3 content-tag',
    says: 'A content block has a type.',
    lines: { '4.3. Content Types (Message Components)': ['042c0dde', '747c3218'] },
  },
  {
    id: 'session-manager/4.3 one-part',
    says: 'A content block has exactly one part.',
    lines: { '4.3. Content Types (Message Components)': ['6eebc331'] },
  },
  {
    id: 'session-manager/4.3 part-text',
    says: 'Text is in `text`.',
    lines: { '4.3. Content Types (Message Components)': ['10e39877'] },
  },
  {
    id: 'session-manager/4.3 part-image',
    says: 'An image is in `image`.',
    lines: { '4.3. Content Types (Message Components)': ['c94d4e92'] },
  },
  {
    id: 'session-manager/4.3 part-tool-use',
    says: 'A tool call is in `tool_use`.',
    lines: { '4.3. Content Types (Message Components)': ['dc157eed'] },
  },
  {
    id: 'session-manager/4.3 part-tool-result',
    says: 'A tool result is in `tool_result`.',
    lines: { '4.3. Content Types (Message Components)': ['479aac8e'] },
  },
  {
    id: 'session-manager/4.3 text-content',
    says: 'Text is in the member `content`.',
    lines: { '4.3. Content Types (Message Components)': ['362968b7', 'f8d91588'] },
  },
  {
    id: 'session-manager/4.3 image-source',
    says: 'An image has a source.',
    lines: { '4.3. Content Types (Message Components)': ['f084f19d', '9fb2570f'] },
  },
  {
    id: 'session-manager/4.3 image-source-type',
    says: 'An image source is base64 data or a URL.',
    lines: { '4.3. Content Types (Message Components)': ['efbacf05', '6dd5813e'] },
    settled: 'We add `blob`, with `sha256` and `size`.',
  },
  {
    id: 'session-manager/4.3 image-media-type',
    says: 'An image source has a media type.',
    lines: { '4.3. Content Types (Message Components)': ['03833907'] },
  },
  {
    id: 'session-manager/4.3 image-data',
    says: 'An image source has data.',
    lines: { '4.3. Content Types (Message Components)': ['c94ca5b0'] },
  },
  {
    id: 'session-manager/4.3 tool-use-id',
    says: 'A tool call has an id.',
    lines: { '4.3. Content Types (Message Components)': ['61ba6985', 'ce833ec6'] },
  },
  {
    id: 'session-manager/4.3 tool-use-name',
    says: 'A tool call has a tool name.',
    lines: { '4.3. Content Types (Message Components)': ['dee309d4'] },
  },
  {
    id: 'session-manager/4.3 tool-use-input',
    says: 'A tool call has an input object.',
    lines: { '4.3. Content Types (Message Components)': ['6e4030fb'] },
  },
  {
    id: 'session-manager/4.3 tool-result-tool-use-id',
    says: 'A tool result names its call.',
    lines: { '4.3. Content Types (Message Components)': ['950b07fe', '47ef8683'] },
  },
  {
    id: 'session-manager/4.3 tool-result-is-error',
    says: 'A tool result has an error flag.',
    lines: { '4.3. Content Types (Message Components)': ['308672f4'] },
    settled: 'A missing flag means success, as in section 12.2.',
  },
  {
    id: 'session-manager/4.3 tool-result-content',
    says: 'A tool result has content.',
    lines: { '4.3. Content Types (Message Components)': ['f8d91588'] },
    settled: 'A string or a list of blocks.',
  },
  {
    id: 'session-manager/5.1 file-as-text',
    says: 'The text of a file can be embedded in a text block.',
    lines: { '5.1. File Content Handling': ['bdeca510', 'ee79f9b7'] },
  },
  {
    id: 'session-manager/5.1 file-as-tool-result',
    says: 'The text of a file can be the result of a tool.',
    lines: { '5.1. File Content Handling': ['bbcbc904'] },
  },
  {
    id: 'session-manager/5.1 example-text-with-file',
    says: 'The example message with an embedded file is valid.',
    lines: {
      '5.1. File Content Handling': [
        '50837c1a',
        '076d0b02',
        '64e6711e',
        'cf316bf6',
        '72e50048',
        '3b4971d4',
        '09d1b3dd',
        'cef580df',
        '093e0d0d',
        '9525e39f',
        'fe20cd83',
      ],
    },
  },
  {
    id: 'session-manager/5.2 normalizing',
    says: 'Provider formats are converted to our content blocks.',
    lines: { '5.2. Provider Mappings': ['31290b5e'] },
    settled: 'The model adapters of the agent package convert; a session stores only our form.',
  },
  {
    id: 'session-manager/5.2 openai-string',
    says: 'A string from OpenAI becomes a text block.',
    lines: { '5.2. Provider Mappings': ['0b81ecca'] },
    settled: 'As for `5.2 normalizing`.',
  },
  {
    id: 'session-manager/5.2 openai-parts',
    says: 'Text parts from OpenAI become text blocks.',
    lines: { '5.2. Provider Mappings': ['6732db7b'] },
    settled: 'As for `5.2 normalizing`.',
  },
  {
    id: 'session-manager/5.2 anthropic-text',
    says: 'Text blocks from Anthropic become text blocks.',
    lines: { '5.2. Provider Mappings': ['3b29c283'] },
    settled: 'As for `5.2 normalizing`.',
  },
  {
    id: 'session-manager/5.2 google-text',
    says: 'Text parts from Google become text blocks.',
    lines: { '5.2. Provider Mappings': ['c1289637'] },
    settled: 'As for `5.2 normalizing`.',
  },
  {
    id: 'session-manager/5.2 google-inline-data',
    says: 'Inline data from Google becomes an image block.',
    lines: { '5.2. Provider Mappings': ['12578f78'] },
    settled: 'As for `5.2 normalizing`.',
  },
] as const satisfies readonly Requirement[]
