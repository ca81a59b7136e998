import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FormSyntaxError } from './form-syntax-error.js';
import { ModelForm } from './model-form.js';

const B = 'x-boundary';
const TYPE = `multipart/form-data; boundary=${B}`;
const part = (disposition: string, value: string | Buffer, head = ''): Buffer =>
  Buffer.concat([
    Buffer.from(`--${B}\r\nContent-Disposition: form-data; ${disposition}\r\n${head}\r\n`),
    Buffer.from(value as string),
    Buffer.from('\r\n'),
  ]);
const form = (...parts: Buffer[]): Buffer => Buffer.concat([...parts, Buffer.from(`--${B}--\r\n`)]);
const model = part('name="model"', 'whisper');
const file = part(
  'name="file"; filename="a b.wav"',
  Buffer.from([0, 255, 13, 10, 45, 45]),
  'Content-Type: audio/wav\r\n',
);
/** The model, or what is wrong. */
function parsed(bytes: Buffer, type = TYPE): string {
  try {
    return ModelForm.parse(bytes, type).model;
  } catch (error) {
    if (error instanceof FormSyntaxError) return `the form ${error.reason}`;
    throw error;
  }
}

describe('ModelForm', () => {
  it('finds the model wherever it stands, and replaces nothing else', () => {
    for (const parts of [
      [model, file],
      [file, model],
      [part('name="language"', 'de'), model, file],
    ]) {
      const body = form(...parts);
      const read = ModelForm.parse(body, TYPE);
      expect(read.model).toBe('whisper');
      const expected = form(...parts.map((one) => (one === model ? part('name="model"', 'real$&') : one)));
      expect(Buffer.concat(read.withModel('real$&'))).toEqual(expected);
      expect(Buffer.concat(read.withModel('whisper'))).toEqual(body);
    }
  });

  it.each([
    ['name=model', 'name=model'],
    ['an unquoted name before others', 'name=model; filename=x'],
    ['a name behind others', 'filename="x"; name="model"'],
    ['upper case', 'NAME="model"'],
  ])('reads %s', (_, disposition) => expect(parsed(form(part(disposition, 'm')))).toBe('m'));

  it('reads a quoted boundary, a head in any case, an empty first line, an empty file', () => {
    expect(parsed(form(model), `multipart/form-data; charset=utf-8; boundary="${B}"`)).toBe('whisper');
    expect(
      parsed(Buffer.from(`\r\n--${B}\r\ncontent-disposition:form-data;name="model"\r\n\r\nm\r\n--${B}--`)),
    ).toBe('m');
    expect(parsed(form(part('name="file"', ''), model))).toBe('whisper');
    expect(parsed(form(part('name="model"', '')))).toBe('');
  });

  it.each([
    ['of curl', '------------------------d74496d66958873e'],
    ['of browsers', '----WebKitFormBoundary7MA4YWxkTrZu0gW'],
    ['of Python', '0f2a9c1de4b34f2e8f1d2b3c4d5e6f70'],
    ['of .NET', '"1a2b3c4d-0000-1111-2222-333344445555"'],
    ['of Node', '----formdata-undici-012345678901'],
    ['of Apache', '_-.+aZ09'],
    ['of Qt', '"boundary_.oOo._MjA2/NzM1MTQ+Nzg="'.replace('=', '')],
  ])('reads a boundary %s', (_, boundary) => {
    const raw = boundary.replaceAll('"', '');
    const body = Buffer.from(form(file, model).toString('latin1').replaceAll(B, raw), 'latin1');
    expect(parsed(body, `multipart/form-data; boundary=${boundary}`)).toBe('whisper');
  });

  it.each(['a=b', 'a:b', 'a?b', 'a(b', 'a)b', 'a,b', 'a b', 'a;b', 'a"b', 'a\\b', 'ä', '', 'b'.repeat(71)])(
    'reads no boundary %j',
    (boundary) => {
      const body = Buffer.from(form(file, model).toString('latin1').replaceAll(B, boundary), 'latin1');
      for (const written of [boundary, `"${boundary}"`])
        expect(parsed(body, `multipart/form-data; boundary=${written}`)).toMatch(
          /^the form needs the content type/,
        );
    },
  );

  it.each([
    "it's.wav",
    'C:\\a\\b.wav',
    'C:\\\\a\\\\b.wav',
    'v=1.wav',
    'a; b.wav',
    'a;b=c.wav',
    'my name = x.wav',
    '=?UTF-8?Q?=C3=BC?=',
    'ü.wav',
    '',
    'a,b (1)/c?.wav',
    'model',
  ])('reads a form with a file named %j', (name) =>
    expect(parsed(form(part(`name="file"; filename="${name}"`, 'x'), model))).toBe('whisper'),
  );

  it.each(['audio/wav; name="my file.wav"', 'audio/wav; name=a-1.wav; x=y', 'audio/wav;codecs=1'])(
    'reads a part of the type %s',
    (type) =>
      expect(
        parsed(form(part('name="file"; filename="a.wav"', 'x', `Content-Type: ${type}\r\n`), model)),
      ).toBe('whisper'),
  );

  it.each([
    'name="file"; filename="a.wav"; modification-date="Mon, 30 Nov 2026 21:00:00 GMT"; size=4',
    'name="file"; filename*=UTF-8\'\'a%20(1)*.wav',
    "name=file; filename=a.wav; filename*=utf-8''a.wav",
    'name="file"; filename*="UTF-8\'\'a%20b.wav"',
    'filename="a.wav"; modification-date="Mon, 30 Nov 2026 21:00:00 GMT"; size=4; name="file"',
  ])('reads a part with %s', (disposition) =>
    expect(parsed(form(part(disposition, 'x'), model))).toBe('whisper'),
  );

  it.each(['ISO-8859-1', 'iso-8859-1', 'windows-1252', 'UTF-8', 'US-ASCII'])(
    'reads a form that calls itself %s, and so its parts',
    (charset) => {
      const said = part('name="model"', 'm', `Content-Type: text/plain; charset=${charset}\r\n`);
      expect(parsed(form(file, said), `multipart/form-data; charset=${charset}; boundary=${B}`)).toBe('m');
    },
  );

  it('lets what is harmless stand: an extended file name, a charset field of UTF-8, a plain transfer encoding', () => {
    const harmless = form(
      part('name="_charset_"', 'UTF-8'),
      part(
        'name="file"; filename*=utf-8\'\'a.wav; filename=a.wav',
        'x',
        'Content-Transfer-Encoding: binary\r\n',
      ),
      part('name="models"', 'x'),
      model,
    );
    expect(parsed(harmless)).toBe('whisper');
  });

  it.each(['', '\r\n', '\r\n\r\n\r\n'])('lets empty lines stand before and behind: %j', (lines) => {
    const body = Buffer.concat([Buffer.from(lines), form(file, model), Buffer.from(lines)]);
    const read = ModelForm.parse(body, TYPE);
    expect(read.model).toBe('whisper');
    expect(Buffer.concat(read.withModel('whisper'))).toEqual(body);
  });

  it('takes the last of several, and replaces all', () => {
    const read = ModelForm.parse(form(part('name="model"', 'a'), part('name="model"', 'b')), TYPE);
    expect(read.model).toBe('b');
    expect(Buffer.concat(read.withModel('r'))).toEqual(
      form(part('name="model"', 'r'), part('name="model"', 'r')),
    );
  });

  const whole = form(file, model);
  it('is none when cut anywhere before its closing delimiter', () => {
    for (let end = 0; end < whole.length - 2; end++)
      expect(parsed(whole.subarray(0, end))).toMatch(/^the form (is cut off|does not hold the boundary)/);
    expect(parsed(whole.subarray(0, -2))).toBe('whisper');
  });

  it.each<[string, Buffer, string?]>([
    ['no model', form(file)],
    ['a model in the name of a file', form(part('name="file"; filename="x; name=\\"model\\""', 'm'))],
    ['no boundary', whole, 'multipart/form-data'],
    ['two boundaries', whole, `${TYPE}; boundary=other`],
    ['another boundary', whole, 'multipart/form-data; boundary=other'],
    ['a boundary in quotes of another parameter', whole, `multipart/form-data; x="; boundary=other; "; boundary=${B}`],
    ['a slash in a boundary without quotes', Buffer.from(whole.toString('latin1').replaceAll(B, 'a/b'), 'latin1'), 'multipart/form-data; boundary=a/b'],
    ['another parameter', whole, `multipart/form-data; xboundary=other; boundary=${B}`],
    ['a parameter of another case and value', whole, `${TYPE}; Boundary=${B}`],
    ['escapes in its type', whole, `${TYPE}; charset="utf-8\\"`],
    ['more than parameters in its type', whole, `${TYPE}, multipart/form-data`],
    ['text before the first delimiter', Buffer.concat([Buffer.from('Content-Disposition: form-data; name="model"\r\n\r\nhidden\r\n'), whole])],
    ['text behind the last one', Buffer.concat([whole, Buffer.from('Content-Disposition: form-data; name="model"\r\n\r\nhidden')])],
    ['a lone line end behind the last one', Buffer.concat([whole, Buffer.from('\n')])],
    ['a part without a head', form(Buffer.from(`--${B}\r\n\r\nContent-Disposition: form-data; name="model"\r\n\r\nhidden\r\n`), model)],
    ['a part without a disposition', form(Buffer.from(`--${B}\r\nContent-Type: text/plain\r\n\r\nx\r\n`), model)],
    ['a part without a name', form(part('filename="f"', 'x'), model)],
    ['a name with an assignment', form(part('name=b=model', 'hidden'), model)],
    ['a parameter in quotes', form(part('name="p"; filename="; name=model; "', 'hidden'), model)],
    ['a name behind a file name', form(part('filename="x name = model"; name="p"', 'hidden'), model)],
    ['a name behind a semicolon in quotes', form(part('name="p"; filename="a;name = model"', 'hidden'), model)],
    ['an assignment in quotes', form(part('name="p"; filename="a;filename*=b"', 'hidden'), model)],
    ['an assignment in a name', form(part('name="p;name=model"', 'hidden'), model)],
    ['an escape at the end of quotes', form(part('name="p"; filename="a\\\\"', 'hidden'), model)],
    ['an escaped quote', form(part('name="p"; filename="a\\"b"', 'hidden'), model)],
    ['another parameter of a part', form(part('x-name="model"; name="p"', 'hidden'), model)],
    ['a file name twice', form(part('name="p"; filename="a"; FILENAME="b"', 'x'), model)],
    ['a type in another case', whole, `Multipart/form-data; boundary=${B}`],
    ['a parameter in another case', whole, `multipart/form-data; Boundary=${B}`],
    ['a boundary in single quotes', Buffer.from(whole.toString('latin1').replaceAll(B, "'x'"), 'latin1'), "multipart/form-data; boundary='x'"],
    ['a name in the type of a part', form(part('name="p"', 'hidden', 'Content-Type: text/plain; name=model\r\n'), model)],
    ['a quoted name in the type of a part', form(part('name="p"', 'hidden', 'Content-Type: text/plain; x=y; NAME = "model"\r\n'), model)],
    ['an extended name in the type of a part', form(part('name="p"', 'hidden', "Content-Type: text/plain; name*=utf-8''%6dodel\r\n"), model)],
    ['semicolons before a name', form(part('filename="model;;"; name="p"', 'hidden'), model)],
    ['a form in a part', form(part('name="p"', 'x', 'Content-Type: multipart/mixed; boundary=y\r\n'), model)],
    ['a delimiter behind a lone LF before the first', Buffer.concat([Buffer.from(`--${B.slice(1)}\nx\n`), whole])],
    ['text before it on its line', Buffer.concat([Buffer.from('preamble'), whole])],
    ['a delimiter behind a lone LF', form(part('name="file"', `x\n--${B}\nContent-Disposition: form-data; name="model"\n\nhidden\n`), model)],
    ['a delimiter within a line', form(part('name="file"', `x--${B}y`), model)],
    ['a delimiter behind the end', Buffer.concat([whole, model])],
    ['a delimiter with more behind it', Buffer.from(whole.toString('latin1').replace(`--${B}\r\n`, `--${B} \r\n`), 'latin1')],
    ['a name twice', form(part('name="x"; name="model"', 'hidden'), model)],
    ['an extended name', form(part("name=\"x\"; name*=utf-8''model", 'hidden'), model)],
    ['a continued name', form(part('name="x"; name*0="model"', 'hidden'), model)],
    ['a continued, extended name', form(part("name=\"x\"; name*0*=utf-8''mod; name*1=el", 'hidden'), model)],
    ['a name in another case', form(part('name="Model"', 'hidden'), model)],
    ['a name in single quotes', form(part("name='model'", 'hidden'), model)],
    ['a name with blanks', form(part('name=" model"', 'hidden'), model)],
    ['a name of a list', form(part('name="model[]"', 'hidden'), model)],
    ['an encoded name', form(part('name="=?utf-8?Q?model?="', 'hidden'), model)],
    ['a charset field of another charset', form(part('name="_charset_"', 'utf-7'), part('name="+AG0AbwBkAGUAbA-"', 'hidden'), model)],
    ['a model that is encoded', form(part('name="model"', 'd2hpc3Blcg==', 'Content-Transfer-Encoding: base64\r\n'))],
    ['a boundary that ends in a blank', Buffer.from(`--${B} \r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--${B} --\r\n`), `multipart/form-data; boundary="${B} "`],
    ['a model in another charset', form(part('name="model"', 'm', 'Content-Type: text/plain; charset=utf-16\r\n'))],
    ['a head line without a colon', form(part('name="file"', 'x', 'Content-Disposition form-data; name="model"\r\n'), model)],
    ['a byte order mark before a head', form(part('name="file"', 'x', '\ufeffContent-Disposition: form-data; name="model"\r\n'), model)],
    ['a blank before a colon', form(part('name="file"', 'x', 'Content-Disposition : form-data; name="model"\r\n'), model)],
    ['an escape in a name', form(part('name="mo\\del"', 'hidden'), model)],
    ['a disposition that does not parse', form(part('filename=a"; name="model"', 'hidden'), model)],
    ['two dispositions', form(part('name="x"', 'hidden', 'Content-Disposition: form-data; name="model"\r\n'), model)],
    ['a folded head', form(part('name="x";', 'hidden', ' name="model"\r\n'), model)],
    ['a lone LF in a head', form(part('name="x"', 'hidden', 'a: b\nContent-Disposition: form-data; name="model"\r\n'), model)],
    ['a name that is too long', form(part('name="model"', 'm'.repeat(5000)))],
    ['a head that is too long', form(part('name="model"', 'm', `a: ${'b'.repeat(20_000)}\r\n`))],
    ['nothing', Buffer.alloc(0)],
  ])('is none with %s', (_, body, type) => expect(parsed(body, type)).toMatch(/^the form /)); // prettier-ignore

  it.each<[string, Buffer, string?]>([
    ['has no field "model"', form(file)],
    ['needs the content type multipart/form-data', whole, 'multipart/form-data'],
    ['begins with something else', Buffer.concat([Buffer.from('x\r\n'), whole])],
    ['does not hold the boundary', whole, 'multipart/form-data; boundary=other'],
    ['is cut off', whole.subarray(0, -6)],
    ['holds its boundary elsewhere', Buffer.from(whole.toString('latin1').replaceAll('\r\n', '\n'), 'latin1')],
    ['goes on behind its closing boundary', Buffer.concat([whole, model])],
    ['has a field "model" of over 4096 bytes', form(part('name="model"', 'm'.repeat(5000)))],
    ['has a part with a head over 16 KiB', form(part('name="model"', 'm', `a: ${'b'.repeat(20_000)}\r\n`))],
    ['two readers could read differently', form(part('name="x"; name="model"', 'hidden'), model)],
    ['whose head does not end', Buffer.from(`--${B}\r\nContent-Disposition: form-data; name="model"\r\nm\r\n--${B}--`)],
  ])('says that it %s', (told, body, type) => expect(parsed(body, type)).toContain(told)); // prettier-ignore

  it('gives back any other field byte for byte', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.string({ maxLength: 20 }),
        fc.boolean(),
        (bytes, name, first) => {
          const other = part('name="file"; filename="f"', Buffer.from(bytes));
          const own = part('name="model"', Buffer.from(name));
          const body = form(...(first ? [own, other] : [other, own]));
          fc.pre(body.toString('latin1').split(`--${B}`).length === 4);
          const read = ModelForm.parse(body, TYPE);
          expect(read.model).toBe(Buffer.from(name).toString('utf8'));
          const renamed = part('name="model"', 'real');
          expect(Buffer.concat(read.withModel('real'))).toEqual(
            form(...(first ? [renamed, other] : [other, renamed])),
          );
        },
      ),
    );
  });
});
