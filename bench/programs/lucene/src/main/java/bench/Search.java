package bench;

import java.nio.file.Path;
import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.StoredField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.store.MMapDirectory;

/** Drives Lucene over MMapDirectory: makes an index, looks documents up, and searches. */
public final class Search {
    private static final int DOCUMENTS = 400_000;
    private static final int WORDS_PER_DOCUMENT = 80;
    private static final int VOCABULARY = 400_000;

    public static void main(String[] arguments) throws Exception {
        Random random = new Random(Long.parseLong(arguments[2]));
        try (MMapDirectory directory = new MMapDirectory(Path.of(arguments[1]))) {
            switch (arguments[0]) {
                case "make" -> make(directory, random);
                case "search" -> search(directory, random);
                case "lookup" -> lookUp(directory, random);
                default -> throw new IllegalArgumentException(arguments[0]);
            }
        }
    }

    /** A word; few words are in many documents and many in few. */
    private static String word(Random random) {
        return "w" + random.nextInt(1 + random.nextInt(VOCABULARY));
    }

    private static void make(MMapDirectory directory, Random random) throws Exception {
        IndexWriterConfig config = new IndexWriterConfig(new StandardAnalyzer());
        config.setUseCompoundFile(false).setRAMBufferSizeMB(256);
        try (IndexWriter writer = new IndexWriter(directory, config)) {
            StringBuilder text = new StringBuilder();
            for (int number = 0; number < DOCUMENTS; number++) {
                text.setLength(0);
                for (int at = 0; at < WORDS_PER_DOCUMENT; at++) {
                    text.append(word(random)).append(' ');
                }
                byte[] payload = new byte[700];
                random.nextBytes(payload);
                Document document = new Document();
                document.add(new StringField("id", Integer.toString(number), Field.Store.NO));
                document.add(new TextField("body", text.toString(), Field.Store.NO));
                document.add(new StoredField("payload", payload));
                writer.addDocument(document);
            }
            writer.forceMerge(1);
        }
    }

    private static long payload(IndexSearcher searcher, int document) throws Exception {
        byte[] bytes = searcher.storedFields().document(document).getBinaryValue("payload").bytes;
        return java.util.Arrays.hashCode(bytes);
    }

    private static void search(MMapDirectory directory, Random random) throws Exception {
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            long found = 0;
            long sum = 0;
            for (int query = 0; query < 300; query++) {
                BooleanQuery.Builder words = new BooleanQuery.Builder();
                for (int at = 0; at < 3; at++) {
                    Term term = new Term("body", word(random));
                    words.add(new TermQuery(term), BooleanClause.Occur.SHOULD);
                }
                words.add(new PhraseQuery("body", word(random), word(random)), BooleanClause.Occur.SHOULD);
                TopDocs best = searcher.search(words.build(), 5);
                found += best.totalHits.value;
                for (ScoreDoc one : best.scoreDocs) {
                    sum += payload(searcher, one.doc);
                }
            }
            System.out.println(found + " documents, sum " + sum);
        }
    }

    private static void lookUp(MMapDirectory directory, Random random) throws Exception {
        try (DirectoryReader reader = DirectoryReader.open(directory)) {
            IndexSearcher searcher = new IndexSearcher(reader);
            long sum = 0;
            for (int look = 0; look < 1500; look++) {
                Term id = new Term("id", Integer.toString(random.nextInt(DOCUMENTS)));
                sum += payload(searcher, searcher.search(new TermQuery(id), 1).scoreDocs[0].doc);
            }
            System.out.println("sum " + sum);
        }
    }
}
