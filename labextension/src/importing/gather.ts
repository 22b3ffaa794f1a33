import type { IUploadedFile } from '../api/types';

/** A file in the browser, and where it lies below what was dropped. */
export interface ILocalFile extends IUploadedFile {
  blob: Blob;
}

/** What was dropped or chosen at once and is one capture: a file, or a folder with all that matters in it. */
export interface ISource {
  title: string;
  files: ILocalFile[];
}

/** Files that a capture is made of; in a folder all others stay where they are. */
const WANTED =
  /\.(xplane\.pb|nsys-rep|qdstrm|sqlite|trace\.json\.gz)$|^perfetto_trace\.json\.gz$/;
const RECORD = 'capture.json';
const MOST_FILES = 100_000;

export function fileSource(file: File): ISource {
  return { title: file.name, files: [localFile(file, file.name)] };
}

/**
 * Give what was dropped: each file and each folder by itself.
 *
 * To be called within the event: its data are gone afterwards.
 */
export function droppedSources(data: DataTransfer): Promise<ISource[]> {
  const sources: Promise<ISource>[] = [];
  for (const item of Array.from(data.items)) {
    const entry = item.webkitGetAsEntry();
    const file = item.getAsFile();
    if (entry?.isDirectory) {
      sources.push(folderSource(entry as FileSystemDirectoryEntry));
    } else if (file) {
      sources.push(Promise.resolve(fileSource(file)));
    }
  }
  return Promise.all(sources);
}

async function folderSource(
  folder: FileSystemDirectoryEntry
): Promise<ISource> {
  const found: [FileSystemFileEntry, string][] = [];
  const pending: [FileSystemDirectoryEntry, string][] = [
    [folder, `${folder.name}/`]
  ];
  for (let next = pending.pop(); next; next = pending.pop()) {
    const [directory, prefix] = next;
    for (const entry of await entriesOf(directory)) {
      if (entry.isDirectory) {
        pending.push([
          entry as FileSystemDirectoryEntry,
          `${prefix}${entry.name}/`
        ]);
      } else {
        found.push([entry as FileSystemFileEntry, prefix + entry.name]);
      }
    }
    if (found.length > MOST_FILES) {
      break;
    }
  }
  // A capture goes with all that its record lists.
  const isCapture = found.some(([entry]) => entry.name === RECORD);
  const wanted = found.filter(
    ([entry]) => isCapture || WANTED.test(entry.name)
  );
  const files = wanted.map(async ([entry, path]) =>
    localFile(await fileOf(entry), path)
  );
  return { title: folder.name, files: await Promise.all(files) };
}

/** All entries of a folder, which the browser gives some at a time. */
async function entriesOf(
  folder: FileSystemDirectoryEntry
): Promise<FileSystemEntry[]> {
  const reader = folder.createReader();
  const all: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => {
      reader.readEntries(resolve, reject);
    });
    if (some.length === 0) {
      return all;
    }
    all.push(...some);
  }
}

function fileOf(entry: FileSystemFileEntry): Promise<File> {
  return new Promise((resolve, reject) => {
    entry.file(resolve, reject);
  });
}

function localFile(file: File, path: string): ILocalFile {
  return {
    path,
    size_bytes: file.size,
    modified_s: file.lastModified / 1000,
    blob: file
  };
}
